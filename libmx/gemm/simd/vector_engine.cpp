// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/gemm/exact_dot.hpp"
#include "libmx/gemm/factor.hpp"
#include "libmx/gemm/simd/kernels.hpp"
#include "libmx/gemm/terms.hpp"
#include "libmx/gemm/unpacked_operand.hpp"

namespace mx::gemm::simd {
namespace {

// The elements of a row of an operand in a step.
struct row_part {
    const operand& o;
    std::size_t row, first, last;  // k

    row_part(const operand_panel& p, std::size_t at, std::size_t step) : o(p.source()), row(at) {
        first = step * p.shape().length;
        last = std::min(first + p.shape().length, o.depth);
    }

    // A number with the same effect as the element with regard to zeros, NaN, infinities and signs.
    float stand_in(std::size_t k) const {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const factor x =
            unpack(*o.format, subnormal_alignment::least_exponent, o.codes[row * o.depth + k]);
        if (x.what == value_class::nan) return std::numeric_limits<float>::quiet_NaN();
        const float magnitude = x.what == value_class::infinite ? infinity
                                : x.significand == 0            ? 0.0F
                                                                : 1.0F;
        return x.negative ? -magnitude : magnitude;
    }

    bool has_nan_scale() const {
        if (o.scaling == 0) return false;
        const std::size_t per_row = (o.depth + o.scale_block - 1) / o.scale_block;
        const std::uint8_t* const scales = o.scales.data() + row * per_row;
        for (std::size_t k = first; k < last; k += o.scale_block - k % o.scale_block) {
            if (unpack_scale(o.scaling, scales[k / o.scale_block]).nan) return true;
        }
        return false;
    }
};

float addend_of(const row_part& a, const row_part& b) {
    if (a.has_nan_scale() || b.has_nan_scale()) return std::numeric_limits<float>::quiet_NaN();
    float sum = 0;
    for (std::size_t k = a.first; k < a.last; ++k) {
        const float product = a.stand_in(k) * b.stand_in(k);
        if (!std::isfinite(product)) sum += product;
    }
    return sum;
}

// Rows of B interleaved in groups: element k of lane i of a group is at k * panel_lanes + i.
template <typename T>
std::vector<T> in_groups(const std::vector<T>& rows, std::size_t count, std::size_t depth) {
    const std::size_t groups = (count + panel_lanes - 1) / panel_lanes;
    std::vector<T> out(groups * depth * panel_lanes);
    for (std::size_t r = 0; r < count; ++r) {
        T* const to = out.data() + r / panel_lanes * depth * panel_lanes + r % panel_lanes;
        for (std::size_t k = 0; k < depth; ++k) to[k * panel_lanes] = rows[r * depth + k];
    }
    return out;
}

using lanes = std::array<float, panel_lanes>;

// Calls change(row, group, first lane, last lane, accumulators) for every row of the tile and every
// group of columns that it overlaps.
template <typename Change>
void each_group(const tile& where, std::uint32_t* acc, Change change) {
    const std::size_t end = where.col + where.cols;
    for (std::size_t r = 0; r < where.rows; ++r) {
        for (std::size_t col = where.col; col < end;) {
            const std::size_t group = col / panel_lanes;
            const std::size_t next = std::min(end, (group + 1) * panel_lanes);
            std::uint32_t* const at = acc + r * where.cols + (col - where.col);
            const std::size_t first = col % panel_lanes;
            lanes c{};
            for (std::size_t i = 0; i < next - col; ++i) {
                c[first + i] = base::float_from_bits(at[i]);
            }
            change(where.row + r, group, first, first + (next - col), c);
            for (std::size_t i = 0; i < next - col; ++i) at[i] = base::bits_of(c[first + i]);
            col = next;
        }
    }
}

class exact_vectors final : public engine {
  public:
    exact_vectors(const kernels& k, const operand& a, const operand& b)
        : kernels_(k),
          depth_(a.depth),
          a_(exact_values(a)),
          b_(in_groups(exact_values(b), b.rows, b.depth)) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        each_group(
            where, acc,
            [&](std::size_t row, std::size_t group, std::size_t first, std::size_t last, lanes& c) {
                const double* const a = a_.data() + row * depth_ + steps.first;
                const double* const b = b_.data() + (group * depth_ + steps.first) * panel_lanes;
                lanes least, most;
                kernels_.exact_ends(a, b, steps.count, c.data(), least.data(), most.data());
                for (std::size_t i = first; i < last; ++i) {
                    // If both ends round alike, so does everything between them.
                    const bool sure = least[i] == most[i] && least[i] != 0;
                    c[i] = sure ? least[i] : alone(a, b + i, steps.count, c[i]);
                }
            });
    }

  private:
    static float alone(const double* a, const double* b, std::size_t count, float c) {
        std::vector<double> column(count);
        for (std::size_t k = 0; k < count; ++k) column[k] = b[k * panel_lanes];
        return exact_dot(a, column.data(), count, c);
    }

    const kernels& kernels_;
    std::size_t depth_;
    std::vector<double> a_, b_;
};

class chain_vectors final : public engine {
  public:
    chain_vectors(const kernels& k, const operand& a, const operand& b, intake how)
        : kernels_(k),
          depth_(a.depth),
          a_(dequantized(a, how)),
          b_(in_groups(dequantized(b, how), b.rows, b.depth)) {}

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        each_group(where, acc,
                   [&](std::size_t row, std::size_t group, std::size_t, std::size_t, lanes& c) {
                       kernels_.chain(a_.data() + row * depth_ + steps.first,
                                      b_.data() + (group * depth_ + steps.first) * panel_lanes,
                                      steps.count, steps.descending, c.data());
                   });
    }

  private:
    const kernels& kernels_;
    std::size_t depth_;
    std::vector<float> a_, b_;
};

constexpr int group_length = 16;

// Products of two elements are exact in float32, and so is scaling them by powers of two.
bool fits_narrow(const operand_format& f) { return f.exponent_bits <= 5 && f.mantissa_bits <= 10; }

panel_shape shape_of(const operand& a, const operand& b, const accumulator& m) {
    panel_shape shape;
    shape.length = step_length(m);
    shape.part = shape.length;
    if (m.how == algorithm::grouped) {
        shape.values = panel_values::integers;
        shape.part = static_cast<std::size_t>(group_length);
    } else if (!fits_narrow(*a.format) || !fits_narrow(*b.format) || m.fraction_bits > 25) {
        shape.values = panel_values::wide;
    }
    return shape;
}

panel_shape by_row(panel_shape shape) {
    shape.lanes = 1;
    return shape;
}

// The f16 bits of a value that f16 represents exactly.
std::uint32_t half_bits(float x) {
    if (std::isinf(x)) return infinity_bits(target_of(conversion::rne_fp16), x < 0);
    return base::half_saturated(x);
}

float value_of(conversion c, std::uint32_t bits) {
    if (!gives_f16(c)) return base::float_from_bits(bits);
    return base::float_from_half(static_cast<std::uint16_t>(bits));
}
std::uint32_t bits_of(conversion c, float x) {
    if (std::isnan(x)) return canonical_nan(c);
    return gives_f16(c) ? half_bits(x) : base::bits_of(x);
}

class vector_engine final : public engine {
  public:
    vector_engine(const kernels& k, const operand& a, const operand& b, const accumulator& m,
                  int threads)
        : model_(m),
          columns_(b, shape_of(a, b, m), threads),
          rows_(a, by_row(columns_.shape()), threads) {
        const panel_values values = columns_.shape().values;
        run_ = values == panel_values::integers ? k.grouped
               : values == panel_values::wide   ? k.fused_wide
                                                : k.fused_narrow;
    }

    void walk(const tile& where, const step_range& steps, std::uint32_t* acc) const override {
        for (std::size_t done = 0; done < where.rows; done += most_rows) {
            tile part = where;
            part.row += done;
            part.rows = std::min(most_rows, where.rows - done);
            for (std::size_t col = where.col; col < where.col + where.cols; col += part.cols) {
                const std::size_t next = (col / panel_lanes + 1) * panel_lanes;
                part.col = col;
                part.cols = std::min(next, where.col + where.cols) - col;
                walk_group(part, steps, acc + done * where.cols + (col - where.col), where.cols);
            }
        }
    }

    // As many rows as fit in the L1 cache with their part of a step, next to the columns.
    std::size_t tile_rows() const override { return most_rows; }
    std::size_t tile_cols() const override { return panel_lanes; }

  private:
    static constexpr std::size_t most_rows = 32;

    // The columns of one group; rows of `acc` are `stride` apart.
    void walk_group(const tile& where, const step_range& steps, std::uint32_t* acc,
                    std::size_t stride) const {
        float c[most_rows * panel_lanes] = {};
        const conversion convert = model_.convert;
        float* const first = c + where.col % panel_lanes;
        for (std::size_t r = 0; r < where.rows; ++r) {
            for (std::size_t i = 0; i < where.cols; ++i) {
                first[r * panel_lanes + i] = value_of(convert, acc[r * stride + i]);
            }
        }
        run_(
            {&model_, &rows_, &columns_, where.row, where.rows, where.col / panel_lanes, steps, c});
        for (std::size_t r = 0; r < where.rows; ++r) {
            for (std::size_t i = 0; i < where.cols; ++i) {
                acc[r * stride + i] = bits_of(convert, first[r * panel_lanes + i]);
            }
        }
    }

    accumulator model_;
    operand_panel columns_, rows_;
    void (*run_)(const panel_tile&);
};

}  // namespace

void special_addends(const panel_tile& t, std::size_t row, std::size_t step, float* addends) {
    const row_part a(*t.a, row, step);
    for (std::size_t lane = 0; lane < panel_lanes; ++lane) {
        const std::size_t column = t.column_group * panel_lanes + lane;
        addends[lane] =
            column < t.b->source().rows ? addend_of(a, row_part(*t.b, column, step)) : 0.0F;
    }
}

bool has_software_kernels(target t, const accumulator& m) {
    return m.how == algorithm::exact || (m.how == algorithm::fma_chain && t != target::sse4);
}

std::unique_ptr<engine> make_software_vectors(const kernels& k, const operand& a, const operand& b,
                                              const accumulator& m) {
    if (m.how == algorithm::exact) return std::make_unique<exact_vectors>(k, a, b);
    return std::make_unique<chain_vectors>(k, a, b, m.enters);
}

bool computes(const accumulator& m, const operand& a, const operand& b) {
    const bool to_float = m.convert == conversion::rz_fp32 || m.convert == conversion::rz_e8m13;
    const bool converts = to_float || m.convert == conversion::rne_fp16;
    // Keeps every sum and every power of two in the range of float64.
    const bool in_range = m.fraction_bits >= 0 && m.fraction_bits <= 40 && m.fused_length >= 1 &&
                          m.fused_length <= 1024 && m.exponent_floor >= -400 &&
                          m.exponent_floor <= 400;
    if (!converts || !in_range || m.zero != zero_sign::plus ||
        m.subnormals != subnormal_alignment::least_exponent) {
        return false;
    }
    if (m.how == algorithm::grouped) {
        const auto fits = [](const operand& o) {
            return o.format->member == takes_fp4 &&
                   o.scale_block % static_cast<std::size_t>(group_length) == 0;
        };
        return m.group_length == group_length && m.fused_length % group_length == 0 && fits(a) &&
               fits(b);
    }
    const auto fits = [&](const operand& o) {
        const auto length = static_cast<std::size_t>(m.fused_length);
        return o.scaling != scales_ue4m3_16 && o.scale_block % length == 0;
    };
    return m.how == algorithm::fused && fits(a) && fits(b);
}

std::unique_ptr<engine> make_vector_engine(const kernels& k, const operand& a, const operand& b,
                                           const accumulator& m, int threads) {
    return std::make_unique<vector_engine>(k, a, b, m, threads);
}

}  // namespace mx::gemm::simd
