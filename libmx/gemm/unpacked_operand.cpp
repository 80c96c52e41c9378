// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/unpacked_operand.hpp"

#include <cmath>
#include <limits>

#include "libmx/base/half.hpp"
#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/terms.hpp"

namespace mx::gemm {
namespace {

const std::uint8_t* scales_of_row(const operand& x, std::size_t row) {
    const std::size_t blocks = (x.depth + x.scale_block - 1) / x.scale_block;
    return x.scales.data() + row * blocks;
}

// A factor with its block's scale applied.
factor under(factor f, const scale_factor& s) {
    f.significand *= s.significand;
    f.exponent = static_cast<std::int16_t>(f.exponent + s.exponent);
    if (s.nan) f = {0, 0, value_class::nan, false};
    return f;
}

// Every factor of `x` with its scale, in order.
template <typename Take>
void each_scaled(const operand& x, subnormal_alignment how, Take take) {
    for (std::size_t r = 0; r < x.rows; ++r) {
        for (std::size_t k = 0; k < x.depth; ++k) {
            factor f = unpack(*x.format, how, x.codes[r * x.depth + k]);
            if (x.scaling != 0) {
                f = under(f, unpack_scale(x.scaling, scales_of_row(x, r)[k / x.scale_block]));
            }
            take(r, k, f);
        }
    }
}

void unpack_groups(const operand& x, const accumulator& m, unpacked_operand& u) {
    const auto length = static_cast<std::size_t>(m.group_length);
    u.groups = u.depth / length;
    u.scales.resize(x.rows * u.groups);
    if (x.scaling == 0) return;
    for (std::size_t r = 0; r < x.rows; ++r) {
        for (std::size_t k = 0; k < x.depth; k += length) {
            u.scales[r * u.groups + k / length] =
                unpack_scale(x.scaling, scales_of_row(x, r)[k / x.scale_block]);
        }
    }
}

double value_of(const factor& f, int fraction_bits) {
    if (f.what == value_class::nan) return std::numeric_limits<double>::quiet_NaN();
    const double magnitude = f.what == value_class::infinite
                                 ? std::numeric_limits<double>::infinity()
                                 : std::ldexp(std::abs(f.significand), f.exponent - fraction_bits);
    return f.negative ? -magnitude : magnitude;
}

}  // namespace

int fraction_bits_of(const operand& x) {
    return x.format->mantissa_bits + scale_fraction_bits(x.scaling);
}

unpacked_operand unpack_operand(const operand& x, const accumulator& m) {
    const std::size_t length = step_length(m);
    unpacked_operand u;
    u.depth = (x.depth + length - 1) / length * length;
    u.factors.resize(x.rows * u.depth);
    const bool by_group = m.how == algorithm::grouped;
    if (by_group) {
        unpack_groups(x, m, u);
        for (std::size_t r = 0; r < x.rows; ++r) {
            for (std::size_t k = 0; k < x.depth; ++k) {
                u.factors[r * u.depth + k] =
                    unpack(*x.format, m.subnormals, x.codes[r * x.depth + k]);
            }
        }
    } else {
        each_scaled(x, m.subnormals, [&](std::size_t r, std::size_t k, const factor& f) {
            u.factors[r * u.depth + k] = f;
        });
    }
    return u;
}

std::vector<double> exact_values(const operand& x) {
    std::vector<double> values(x.rows * x.depth);
    const int bits = fraction_bits_of(x);
    each_scaled(x, subnormal_alignment::least_exponent,
                [&](std::size_t r, std::size_t k, const factor& f) {
                    values[r * x.depth + k] = value_of(f, bits);
                });
    return values;
}

std::vector<float> dequantized(const operand& x, intake how) {
    std::vector<float> values;
    values.reserve(x.rows * x.depth);
    for (const double v : exact_values(x)) {
        const auto value = static_cast<float>(v);
        values.push_back(how == intake::bfloat16 ? base::rounded_to_bf16(value) : value);
    }
    return values;
}

}  // namespace mx::gemm
