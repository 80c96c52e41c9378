// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/simd/vector_engine.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/gemm/convert_sum.hpp"

namespace mx::gemm::simd {
namespace {

constexpr int group_length = 16;

// Products of two elements are exact in float32, and so is every power of two they are scaled by.
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

// The f16 bits of a value that f16 has.
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

    // As many rows as leave what they read of a step in the nearest cache, next to the columns.
    std::size_t tile_rows() const override { return most_rows; }
    std::size_t tile_cols() const override { return panel_lanes; }

  private:
    static constexpr std::size_t most_rows = 32;

    // Columns of one group; rows of `acc` are `stride` apart.
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

bool computes(const accumulator& m, const operand& a, const operand& b) {
    const bool to_float = m.convert == conversion::rz_fp32 || m.convert == conversion::rz_e8m13;
    const bool converts = to_float || m.convert == conversion::rne_fp16;
    // What keeps every sum and every power of two inside float64.
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
