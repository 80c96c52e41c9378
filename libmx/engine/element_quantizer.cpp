// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/element_quantizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/element_tally.hpp"
#include "libmx/codec/stored_value.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/shared_formats.hpp"

namespace mx::engine {
namespace {

// Exact: `v` and `d` are float32 numbers, `times` is below 2^28.
void add_sums(block::exact_totals& to, double v, double d, double times) {
    to.x.add(times * v);
    block::add_product(to.x2, times * v, v);
    to.d.add(times * d);
    block::add_product(to.d2, times * d, d);
    block::add_product(to.xd, times * v, d);
}

// (d - v)^2, likewise.
void add_part(base::exact_sum& to, double v, double d, double times) {
    block::add_product(to, times * v, v);
    block::add_product(to, times * d, d);
    block::add_product(to, -2 * times * v, d);
}

// Adds `n` elements of value `x` with the same random draw.
void add_elements(const codec::block_params& p, float x, std::uint32_t draw, std::uint64_t n,
                  bool parts, block::segment_stats& out) {
    const format::element_params& f = p.element;
    const std::uint32_t magnitude = base::bits_of(x) & base::f32_magnitude_mask;
    out.count.elements += n;
    if (magnitude >= base::f32_infinity) {
        (magnitude == base::f32_infinity ? out.count.inf : out.count.nan) += n;
        return;
    }
    const float scale = p.tensor.decode;
    const format::encoded e =
        format::encode_magnitude(f, p.mode, base::bits_of(x / scale), 0, draw);
    const float q = format::decode(*p.format, format::with_sign(f, e.magnitude, e.negative));
    const auto d = static_cast<double>(q * scale), v = static_cast<double>(x);
    codec::element_tally tally;
    const block::error_part part =
        tally.add(f, magnitude != 0, e, e.magnitude, magnitude != 0 && d == 0);
    block::block_stats one{};
    tally.finish(f, one);
    block::each_count([n](std::uint64_t& to, std::uint32_t count) { to += n * count; }, out.count,
                      one.count);
    out.max_error = std::max(out.max_error, std::abs(d - v));
    out.counted_max = std::max(out.counted_max, magnitude);
    const auto times = static_cast<double>(n);
    add_sums(out.sum, v, d, times);
    if (!parts || part == block::error_part::grid) return;
    add_part(part == block::error_part::clamp ? out.sum.clamp : out.sum.underflow, v, d, times);
}

// Floats are gathered in runs of this many, which counters of 64 bits have room for.
constexpr std::size_t run_length = 4096;

__extension__ using wide = __int128;

// Adds n * 2^exponent exactly.
void add_scaled(base::exact_sum& to, wide n, int exponent) {
    constexpr int digit_bits = 48;
    for (int digit = 0; digit < 3; ++digit) {
        const wide above = digit < 2 ? n >> digit_bits : 0;
        const auto low = static_cast<double>(n - above * (wide{1} << digit_bits));
        to.add(std::ldexp(low, exponent + digit * digit_bits));
        n = above;
    }
}

// Runs to nearest even in double arithmetic, for what people measure most: signed floating formats
// with mantissa bits and subnormals, and usual magnitudes. The same results as add_elements.
class usual_run {
  public:
    explicit usual_run(const codec::block_params& p)
        : p_(p),
          scale_(p.tensor.decode),
          most_(static_cast<double>(format::decode(*p.format, p.element.max_positive))) {
        const format::element_params& f = p.element;
        taken_ = f.floating && f.has_sign && f.mantissa_bits > 0 && f.smallest_normal != 0 &&
                 p.mode.how == format::rounding::rtne;
        if (!taken_) return;
        normal_ = static_cast<double>(format::decode(*p.format, f.smallest_normal));
        least_ = base::exact_pow2(f.emin);
        magic_ = base::exact_pow2(52 - f.mantissa_bits);
    }

    void add(std::span<const float> x, bool parts, block::segment_stats& out) const {
        std::uint32_t amax = 0;
        for (const float v : x) amax = std::max(amax, base::bits_of(v) & base::f32_magnitude_mask);
        constexpr float least = 0x1p-60f, most = 0x1p60f;
        const bool usual = amax >= base::bits_of(least) && amax <= base::bits_of(most);
        if (!taken_ || !usual || !(scale_ >= least && scale_ <= most)) {
            for (const float v : x) add_elements(p_, v, 0, 1, parts, out);
            return;
        }
        std::array<float, run_length> d;
        std::array<block::error_part, run_length> part;
        const bool apart = round(x, d.data(), part.data(), out);
        for (std::size_t k = 0; apart && parts && k < x.size(); ++k) {
            if (part[k] == block::error_part::grid) continue;
            const bool clamped = part[k] == block::error_part::clamp;
            add_part(clamped ? out.sum.clamp : out.sum.underflow, static_cast<double>(x[k]),
                     static_cast<double>(d[k]), 1);
        }
        // Sums are over integers: multiples of a unit 2^48 times below the largest, and the few
        // that are no multiples one by one.
        const int unit = static_cast<int>(amax >> 23) - 127 - 47;
        const double units = base::exact_pow2(-unit);
        std::int64_t sum_x = 0, sum_d = 0;
        wide sum_x2 = 0, sum_d2 = 0, sum_xd = 0;
        for (std::size_t k = 0; k < x.size(); ++k) {
            const auto v = static_cast<double>(x[k]), w = static_cast<double>(d[k]);
            const auto i = static_cast<std::int64_t>(v * units);
            const auto j = static_cast<std::int64_t>(w * units);
            if (static_cast<double>(i) != v * units || static_cast<double>(j) != w * units) {
                add_sums(out.sum, v, w, 1);
                continue;
            }
            sum_x += i;
            sum_d += j;
            sum_x2 += wide{i} * i;
            sum_d2 += wide{j} * j;
            sum_xd += wide{i} * j;
        }
        add_scaled(out.sum.x, sum_x, unit);
        add_scaled(out.sum.d, sum_d, unit);
        add_scaled(out.sum.x2, sum_x2, 2 * unit);
        add_scaled(out.sum.d2, sum_d2, 2 * unit);
        add_scaled(out.sum.xd, sum_xd, 2 * unit);
        out.count.elements += x.size();
        out.counted_max = std::max(out.counted_max, amax);
    }

  private:
    // The values of x, the parts of their errors, and what is counted of them. Whether any is
    // clamped or gone.
    bool round(std::span<const float> x, float* to, block::error_part* part,
               block::segment_stats& out) const {
        using enum block::error_part;
        std::uint32_t overflow = 0, clamps = 0, top = 0, gone = 0, subnormal = 0, nonzero = 0;
        double largest = 0;
        for (const float v : x) {
            const auto y = static_cast<double>(std::abs(v / scale_));
            const double binade = base::double_from_bits(base::bits_of(y) & exponent_mask);
            const double c = std::max(binade, least_) * magic_;
            const double unbounded = (y + c) - c;
            const double q = std::min(unbounded, most_);
            const float d = std::copysign(static_cast<float>(q), v) * scale_;
            *to++ = d;
            const bool clamped = unbounded > most_, vanished = (v != 0) & (d == 0);
            *part++ = clamped ? clamp : vanished ? underflow : grid;
            nonzero += v != 0;
            overflow += y > most_;
            clamps += clamped;
            top += q == most_;
            gone += vanished;
            subnormal += (q != 0) & (q < normal_);
            largest = std::max(largest, std::abs(static_cast<double>(d) - static_cast<double>(v)));
        }
        out.count.nonzero += nonzero;
        out.count.overflow += overflow;
        out.count.clamp += clamps;
        out.count.top_code += top;
        out.count.underflow += gone;
        out.count.subnormal += subnormal;
        out.max_error = std::max(out.max_error, largest);
        return clamps + gone != 0;
    }

    static constexpr std::uint64_t exponent_mask = std::uint64_t{0x7ff} << 52;
    const codec::block_params& p_;
    float scale_;
    bool taken_ = false;
    double most_, normal_ = 0, least_ = 0, magic_ = 0;
};

// How often each 16-bit value occurs.
class value_counts {
  public:
    // Fewer elements take less time one by one.
    static bool worth(const codec::value_rectangle& values) {
        const std::uint64_t elements = values.rows * values.cols;
        return values.values.type != tensor::dtype::f32 && elements >= std::uint64_t{1} << 14 &&
               elements < std::uint64_t{1} << 28;
    }

    void clear() { counts_.assign(1u << 16, 0); }

    void add(const codec::stored_values& values, const codec::segment_place& place) {
        for (std::uint64_t row = 0; row < place.rows; ++row) {
            const std::byte* const data = values.data + row * values.stride * sizeof(std::uint16_t);
            for (std::uint64_t col = 0; col < place.cols; ++col) {
                std::uint16_t word;
                std::memcpy(&word, data + col * sizeof word, sizeof word);
                ++counts_[word];
            }
        }
    }

    void total(const codec::block_params& p, tensor::dtype type, bool parts,
               block::segment_stats& out) const {
        for (std::uint32_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] == 0) continue;
            const auto word = static_cast<std::uint16_t>(i);
            const float x = type == tensor::dtype::bf16 ? base::float_from_bf16(word)
                                                        : base::float_from_half(word);
            add_elements(p, x, 0, counts_[i], parts, out);
        }
    }

  private:
    std::vector<std::uint32_t> counts_;
};

void add_each(const codec::block_params& p, const codec::stored_values& values,
              const codec::segment_place& place, bool parts, block::segment_stats& out) {
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, place.tensor_id};
    const usual_run usual(p);
    std::array<float, run_length> run;
    for (std::uint64_t row = 0; row < place.rows; ++row) {
        for (std::uint64_t col = 0; col < place.cols; col += run.size()) {
            const auto count =
                static_cast<std::size_t>(std::min<std::uint64_t>(run.size(), place.cols - col));
            for (std::size_t i = 0; i < count; ++i) {
                run[i] =
                    codec::stored_value(values.type, values.data, row * values.stride + col + i);
            }
            if (!random) {
                usual.add({run.data(), count}, parts, out);
                continue;
            }
            const std::uint64_t at = place.first + row * place.row_stride + col;
            for (std::size_t i = 0; i < count; ++i) {
                add_elements(p, run[i], base::random_u32(key, at + i), 1, parts, out);
            }
        }
    }
}

// Blocks whose elements share more than a scale.
class shared_blocks {
  public:
    void add(const codec::block_params& p, const format::shared_format& f,
             const codec::stored_values& values, const codec::segment_place& place, bool parts,
             block::segment_stats& out) {
        for (std::size_t b = 0; b < place.blocks(); ++b) {
            const codec::block_extent e = codec::extent_of(place, b);
            x_.clear();
            for (std::uint64_t i = 0; i < e.size(); ++i) {
                const std::uint64_t at = (e.row + i / e.cols) * values.stride + e.col + i % e.cols;
                x_.push_back(codec::stored_value(values.type, values.data, at));
            }
            to_.resize(x_.size());
            add_block(p, f, parts, out);
        }
    }

  private:
    void add_block(const codec::block_params& p, const format::shared_format& f, bool parts,
                   block::segment_stats& out) {
        ++out.block.blocks;
        out.count.elements += x_.size();
        std::uint64_t finite = 0;
        for (const float x : x_) {
            finite += std::isfinite(x);
            out.count.nan += std::isnan(x);
            out.count.inf += std::isinf(x);
        }
        if (finite != x_.size()) {
            out.count.poisoned += finite;
            return;
        }
        f.quantize(x_, p.tensor.amax, to_);
        for (std::size_t i = 0; i < x_.size(); ++i) {
            const auto v = static_cast<double>(x_[i]), d = static_cast<double>(to_[i].value);
            const bool nonzero = v != 0, gone = nonzero && d == 0;
            out.count.nonzero += nonzero;
            out.count.overflow += to_[i].overflows;
            out.count.clamp += to_[i].clamps;
            out.count.top_code += nonzero && to_[i].top;
            out.count.underflow += gone;
            out.max_error = std::max(out.max_error, std::abs(d - v));
            out.counted_max =
                std::max(out.counted_max, base::bits_of(x_[i]) & base::f32_magnitude_mask);
            add_sums(out.sum, v, d, 1);
            if (!parts || !(to_[i].clamps || gone)) continue;
            add_part(to_[i].clamps ? out.sum.clamp : out.sum.underflow, v, d, 1);
        }
    }

    std::vector<float> x_;
    std::vector<format::shared_element> to_;
};

class element_quantizer final : public codec::quantizer {
  public:
    void run(const codec::value_rectangle& values, std::span<const codec::placed_segment> segments,
             std::span<const codec::recipe_request> recipes,
             const codec::segment_visitor& visit) override {
        stats_.resize(recipes.size());
        results_.resize(recipes.size());
        const bool counts = value_counts::worth(values);
        if (counts) counts_.clear();
        for (std::size_t s = 0; s < segments.size(); ++s) {
            stop_if_cancelled();
            const codec::placed_segment& segment = segments[s];
            const codec::stored_values from =
                values.values.from(segment.row * values.values.stride + segment.col);
            if (counts) counts_.add(from, segment.place);
            for (std::size_t r = 0; r < recipes.size(); ++r) {
                const codec::block_params& p = *recipes[r].params;
                const bool parts = recipes[r].parts;
                stats_[r] = {};
                results_[r] = {&stats_[r], {}, p.tensor};
                if (const auto* const f = format::find_shared_format(p.format->name)) {
                    shared_.add(p, *f, from, segment.place, parts, stats_[r]);
                } else if (!counts || p.mode.how == format::rounding::stochastic) {
                    add_each(p, from, segment.place, parts, stats_[r]);
                } else if (s + 1 == segments.size()) {
                    counts_.total(p, from.type, parts, stats_[r]);
                }
            }
            visit(s, results_);
        }
    }

  private:
    value_counts counts_;
    shared_blocks shared_;
    std::vector<block::segment_stats> stats_;
    std::vector<codec::segment_result> results_;
};

}  // namespace

std::unique_ptr<codec::quantizer> make_element_quantizer() {
    return std::make_unique<element_quantizer>();
}

}  // namespace mx::engine
