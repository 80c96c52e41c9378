// SPDX-License-Identifier: Apache-2.0
// How codes and scales may have been meant, judged by the error of each reading against the model
// before quantization.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "libmx/base/status.hpp"
#include "libmx/io/sources.hpp"
#include "libmx/io/widen.hpp"
#include "libmx/lint/checkpoint.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::lint {
namespace {

// Another reading counts if its error is below this share of the error of the layout's own...
constexpr double better = 0.5;
// ...and this R-MSE: reading everything as 0 has 1, codes of two bits have less.
constexpr double fits = 0.5;
// No reading of a quantized tensor has an error like this: one bit has 0.6.
constexpr double unrelated = 0.75;

constexpr std::uint64_t most_values = std::uint64_t{1} << 18;  // of a band
constexpr std::uint64_t most_rows = 32;

block::view matrices_of(const tensor::shape& s) {
    const std::uint64_t cols = s.empty() ? 1 : s.back();
    const std::uint64_t rows = s.size() < 2 ? 1 : s[s.size() - 2];
    const std::uint64_t all = *tensor::element_count(s);
    return {all == 0 ? 0 : all / rows / cols, rows, cols};
}

// Neighbouring rows of one matrix, or the first values of a row too long for a sample.
struct band {
    std::uint64_t matrix, row, rows, cols;
};

// At the beginning, in the middle and at the end.
std::vector<band> bands_of(const block::view& v) {
    const std::uint64_t cols = std::min(v.cols, most_values);
    const std::uint64_t rows = std::min({v.rows, most_rows, most_values / cols});
    std::vector<band> all;
    for (const std::uint64_t part : {0, 1, 2}) {
        const band b{(v.batch - 1) * part / 2, (v.rows - rows) * part / 2, rows, cols};
        const bool again = !all.empty() && all.back().matrix == b.matrix && all.back().row == b.row;
        if (!again) all.push_back(b);
    }
    return all;
}

using band_values = std::vector<float>;

std::vector<band_values> read_bands(const io::byte_source& from, tensor::dtype type,
                                    const block::view& v, const std::vector<band>& bands) {
    std::vector<band_values> all;
    std::vector<std::byte> scratch;
    for (const band& b : bands) {
        band_values& values = all.emplace_back(static_cast<std::size_t>(b.rows * b.cols));
        io::read_f32(from, type, (b.matrix * v.rows + b.row) * v.cols, values, scratch);
    }
    return all;
}

// A tensor's values, decoded as `p` says, or by their reader.
struct decoded_values {
    std::unique_ptr<io::byte_source> source;
    tensor::dtype type;
    block::view view;
};
decoded_values decoded(const checkpoint& c, const module& m, const io::pairing* p) {
    const io::tensor_info& t = c.info(*m.codes);
    if (p == nullptr) return {c.open(*m.codes), t.type, matrices_of(t.shape)};
    return {io::open_pairing(*p, c.arrays()), io::logical_info(*p, c.arrays()).type,
            matrices_of(p->shape)};
}
std::vector<band_values> decoded_bands(const checkpoint& c, const module& m, const io::pairing* p,
                                       const std::vector<band>& bands) {
    const decoded_values d = decoded(c, m, p);
    return read_bands(*d.source, d.type, d.view, bands);
}

bool can_decode(const checkpoint& c, const module& m) {
    return m.codes && (c.pairing_of(m) != nullptr || !c.info(*m.codes).layout.empty());
}

// Sums over the values x of the original and d of a reading. What is NaN or Inf is left out: most
// of a reading that overflows.
struct comparison {
    std::uint64_t all = 0, finite = 0;
    double xx = 0, dd = 0, dx = 0, error = 0;
    void add(float x, float d) {
        ++all;
        if (!std::isfinite(x) || !std::isfinite(d)) return;
        ++finite;
        const double a = x, b = d;
        xx += a * a;
        dd += b * b;
        dx += a * b;
        error += (a - b) * (a - b);
    }
    // The error over the root mean square of the original; infinite if too little is finite.
    double rmse() const { return relative(error / xx); }
    double best_factor() const { return dx / dd; }
    double rmse_by_best_factor() const { return relative(1 - dx * dx / (dd * xx)); }

  private:
    double relative(double square) const {
        if (2 * finite < all || !std::isfinite(square)) {
            return std::numeric_limits<double>::infinity();
        }
        return std::sqrt(std::max(0.0, square));
    }
};

// A reading other than the layout's, the array that is then at fault, and what to do.
struct other_reading {
    std::string name;
    double rmse;
    std::size_t at_fault;
    std::string repair;
};

// The place of value i of a row within the row, as stored, if codes of a block were meant in
// another order.
using order_function = std::uint64_t (*)(std::uint64_t i, std::uint64_t block);
struct code_order {
    std::string_view name, repair;
    bool ggml;  ///< of blocks whose low nibbles are their first half
    order_function place;
};
constexpr std::array code_orders{
    code_order{"nibbles exchanged", "store the first of two codes in the low nibble", false,
               [](std::uint64_t i, std::uint64_t) { return i ^ 1u; }},
    code_order{"the first half of a block in low nibbles", "store neighbouring codes in one byte",
               false,
               [](std::uint64_t i, std::uint64_t block) {
                   const std::uint64_t in = i % block, half = block / 2;
                   return i - in + (in < half ? 2 * in : 2 * (in - half) + 1);
               }},
    code_order{"nibbles exchanged", "store the first half of a block in the low nibbles", true,
               [](std::uint64_t i, std::uint64_t block) {
                   return i - i % block + (i + block / 2) % block;
               }},
    code_order{"neighbouring codes in one byte",
               "store the first half of a block in the low nibbles", true,
               [](std::uint64_t i, std::uint64_t block) {
                   const std::uint64_t in = i % block;
                   return i - in + in / 2 + (in % 2) * (block / 2);
               }},
};

// The reading of one tensor under the layout, and where its original is.
class tensor_readings {
  public:
    tensor_readings(const checkpoint& c, const module& m, const io::tensor_ref& original)
        : c_(c), m_(m), p_(c.pairing_of(m)), original_(original) {
        shape_ = p_ != nullptr ? p_->shape : c.info(*m.codes).shape;
        layout_ = c.info(*m.codes).layout;
    }

    void judge(std::vector<finding>& out) {
        const tensor::shape& of_original = original_.info().shape;
        const std::size_t axes = shape_.size();
        tensor::shape turned = shape_;
        if (axes >= 2) std::swap(turned[axes - 1], turned[axes - 2]);
        const bool same = shape_ == of_original;
        if (!same && turned != of_original) {
            // A part of another tensor, or padded: nothing is known of its values.
            tell(severity::warning, *m_.codes, "has another shape than the original",
                 fmt::format("{}, not {}", tensor::to_string(shape_),
                             tensor::to_string(of_original)),
                 "an engine refuses it, unless it is meant for another arrangement of the matrix",
                 "compare with the model that was quantized", out);
            return;
        }
        view_ = matrices_of(shape_);
        if (view_.elements() == 0) return;
        bands_ = bands_of(view_);
        const block::view of = matrices_of(of_original);
        original_bands_ = bands_of(of);
        x_ = read_bands(*original_.file->open(original_.index), original_.info().type, of,
                        original_bands_);
        const std::vector<band_values> stored = values_of(p_);
        const bool may_turn = axes >= 2;
        const bool stack = axes > 2;
        // Files of experts and the models that read them differ in which axis is last.
        const comparison own = same ? along(stored) : across(stored);
        if (own.finite != 0 && own.xx == 0) return;  // nothing but zeros
        const double rmse = own.rmse();
        if (same) read_otherwise(stored);
        if (same && may_turn && shape_[axes - 1] == shape_[axes - 2]) {
            add_other("rows and columns exchanged", across(stored).rmse(), *m_.codes,
                      "store the matrix as [out, in]");
        }
        if (!same && !stack) {
            others_.push_back(
                {"rows and columns exchanged", rmse, *m_.codes, "store the matrix as [out, in]"});
        }
        conclude(own, same || stack ? rmse : std::numeric_limits<double>::infinity(), out);
    }

  private:
    std::vector<band_values> values_of(const io::pairing* p) const {
        return decoded_bands(c_, m_, p, bands_);
    }

    comparison along(const std::vector<band_values>& d) const {
        return along(d, [](std::uint64_t i) { return i; });
    }
    template <class Place>
    comparison along(const std::vector<band_values>& d, Place&& place) const {
        comparison c;
        for (std::size_t b = 0; b < d.size(); ++b) {
            const std::uint64_t cols = bands_[b].cols;
            for (std::size_t i = 0; i < d[b].size(); ++i) {
                const std::uint64_t col = i % cols, from = place(col);
                if (from < cols) c.add(x_[b][i], d[b][i - col + from]);
            }
        }
        return c;
    }
    // Element [r, c] with [c, r] of the original, where both are in a band.
    comparison across(const std::vector<band_values>& d) const {
        comparison all;
        for (std::size_t a = 0; a < bands_.size(); ++a) {
            for (std::size_t b = 0; b < original_bands_.size(); ++b) {
                const band& own = bands_[a];
                const band& other = original_bands_[b];
                if (own.matrix != other.matrix) continue;
                for (std::uint64_t r = 0; r < own.rows && own.row + r < other.cols; ++r) {
                    for (std::uint64_t c = 0; c < other.rows && other.row + c < own.cols; ++c) {
                        all.add(x_[b][c * other.cols + own.row + r],
                                d[a][r * own.cols + other.row + c]);
                    }
                }
            }
        }
        return all;
    }

    void add_other(std::string name, double rmse, std::size_t at_fault, std::string repair) {
        others_.push_back({std::move(name), rmse, at_fault, std::move(repair)});
    }

    void read_otherwise(const std::vector<band_values>& stored) {
        const bool ggml = layout_ == "MXFP4" || layout_ == "NVFP4";
        const bool fp4 = p_ != nullptr && p_->code_bits == 4 && !p_->down &&
                         p_->grid.block_rows == 1 && p_->grid.block_cols % 2 == 0 &&
                         p_->layout->codes <= io::code_array::fp4;
        const std::uint64_t block =
            ggml ? (layout_ == "MXFP4" ? 32 : 16) : (fp4 ? p_->grid.block_cols : 0);
        for (const code_order& o : code_orders) {
            if (block == 0 || o.ggml != ggml || view_.cols % block != 0) continue;
            add_other(std::string(o.name),
                      along(stored, [&](std::uint64_t i) { return o.place(i, block); }).rmse(),
                      *m_.codes, std::string(o.repair));
        }
        if (p_ == nullptr) return;
        if (p_->tensor_scale) {
            io::pairing p = *p_;
            p.divides = !p.divides;
            add_other(p.divides ? "the tensor scale as a divisor" : "the tensor scale as a factor",
                      along(values_of(&p)).rmse(), *p_->tensor_scale, "store the reciprocal");
        }
        if (p_->layout->scales == io::scale_array::real && !p_->table && p_->scales == m_.scale) {
            io::quantized_layout other = *p_->layout;
            io::pairing p = *p_;
            other.scale_divides = !other.scale_divides;
            p.layout = &other;
            add_other(other.scale_divides ? "the scales as divisors" : "the scales as factors",
                      along(values_of(&p)).rmse(), p_->scales, "store the reciprocals");
        }
        if (p_->fits_swizzled) {
            io::pairing p = *p_;
            p.swizzled = true;
            add_other("scales in the 128x4 order", along(values_of(&p)).rmse(), p_->scales,
                      "store the scales row by row");
        }
    }

    void conclude(const comparison& own, double rmse, std::vector<finding>& out) {
        std::vector<std::string> errors{
            shape_ == original_.info().shape || std::isfinite(rmse)
                ? fmt::format("R-MSE as stored {:.3g}", rmse)
                : fmt::format("as stored {}, not {}; R-MSE of other readings",
                              tensor::to_string(shape_),
                              tensor::to_string(original_.info().shape))};
        const other_reading* best = nullptr;
        for (const other_reading& o : others_) {
            errors.push_back(fmt::format("{} {:.3g}", o.name, o.rmse));
            if (best == nullptr || o.rmse < best->rmse) best = &o;
        }
        const double scaled = own.rmse_by_best_factor();
        const bool special = best != nullptr && best->rmse <= fits && best->rmse < better * rmse;
        const bool constant = scaled <= fits && scaled < better * rmse;
        // The factor is what an inverted scale amounts to, too: the more special reading counts.
        if (special && !(constant && scaled <= better * best->rmse)) {
            tell(severity::error, best->at_fault,
                 fmt::format("fits the original only with {}", best->name), found(errors),
                 std::isfinite(rmse)
                     ? fmt::format("an engine computes with weights of R-MSE {:.3g}", rmse)
                     : "an engine refuses it, or computes with other weights",
                 best->repair, out);
        } else if (constant) {
            const double factor = own.best_factor();
            errors.push_back(fmt::format("times {:.4g} {:.3g}", factor, scaled));
            tell(severity::error, scale_at_fault(), "fits the original only with a constant factor",
                 found(errors),
                 fmt::format("an engine computes outputs {:.4g} times as large", 1 / factor),
                 "correct the scale by this factor, or quantize the tensor again", out);
        } else if (rmse > unrelated) {
            tell(severity::warning, *m_.codes, "does not fit the original by any reading",
                 found(errors),
                 "if the weights were not transformed or trained further, the layer is lost",
                 "compare with the model that was quantized, or quantize the tensor again", out);
        }
    }

    static std::string found(const std::vector<std::string>& errors) {
        return fmt::format("{}", fmt::join(errors, "; "));
    }
    // The array that a factor of all values is in.
    std::size_t scale_at_fault() const {
        if (p_ == nullptr) return *m_.codes;
        return p_->tensor_scale.value_or(p_->scales);
    }

    void tell(severity level, std::size_t array, std::string message, std::string found,
              std::string effect, std::string repair, std::vector<finding>& out) const {
        out.push_back(finding_at(level, c_.info(array).name, std::move(message), std::move(found),
                                 std::move(effect), std::move(repair)));
    }

    const checkpoint& c_;
    const module& m_;
    const io::pairing* p_;
    io::tensor_ref original_;
    tensor::shape shape_;
    std::string layout_;
    block::view view_;
    std::vector<band> bands_, original_bands_;
    std::vector<band_values> x_;
    std::vector<other_reading> others_;
};

}  // namespace

std::vector<float> decoded_sample(const checkpoint& c, const module& m) {
    std::vector<float> all;
    if (!can_decode(c, m)) return all;
    const decoded_values d = decoded(c, m, c.pairing_of(m));
    if (d.view.elements() == 0) return all;
    for (const band_values& values : read_bands(*d.source, d.type, d.view, bands_of(d.view))) {
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

float largest_decoded(const checkpoint& c, const module& m) {
    float largest = 0;
    if (!can_decode(c, m)) return largest;
    const decoded_values d = decoded(c, m, c.pairing_of(m));
    std::vector<float> values;
    std::vector<std::byte> scratch;
    for (std::uint64_t at = 0; at < d.view.elements(); at += most_values) {
        values.resize(static_cast<std::size_t>(std::min(most_values, d.view.elements() - at)));
        io::read_f32(*d.source, d.type, at, values, scratch);
        for (const float v : values) largest = std::max(largest, std::abs(v));
    }
    return largest;
}

void find_conventions(const checkpoint& c, std::vector<finding>& out) {
    for (const module& m : c.modules()) {
        if (!m.coded || !can_decode(c, m)) continue;
        const io::pairing* const p = c.pairing_of(m);
        const auto original = c.original(p != nullptr ? p->name : c.info(*m.codes).name);
        if (!original) continue;
        try {
            tensor_readings(c, m, *original).judge(out);
        } catch (const base::error& e) {
            if (e.kind() != base::error_kind::input) throw;
            out.push_back(finding_at(
                severity::warning, c.info(*m.codes).name, "cannot be compared with the original",
                e.message(), "its convention is not checked", "correct what the message says"));
        }
    }
}

}  // namespace mx::lint
