// SPDX-License-Identifier: Apache-2.0
// fused_step for several outputs at a time, as GPUs take it: a term is the product of two floats
// and a power of two, truncated to a 32-bit integer. Operands are split once: into floats relative
// to the row's largest exponent in the step, and exponents. Same bits as fused_step for every rule
// that takes_split() accepts.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/one_step.hpp"
#include "libmx/gemm/rounded_arithmetic.hpp"

// Arrays indexed by output stay in registers only if the loops over them are unrolled.
#if defined(__CUDA_ARCH__)
#define MX_UNROLL _Pragma("unroll")
#else
#define MX_UNROLL
#endif

// On a GPU, offsets of 64 bits would take twice the registers.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

namespace mx::gemm {

/// The steps that are split.
struct split_shape {
    int length;
    conversion convert;
};
inline constexpr std::array split_shapes{
    split_shape{32, conversion::rz_fp32},  split_shape{32, conversion::rz_e8m13},
    split_shape{32, conversion::rne_fp16}, split_shape{16, conversion::rz_fp32},
    split_shape{16, conversion::rz_e8m13}, split_shape{16, conversion::rne_fp16},
    split_shape{8, conversion::rz_fp32},   split_shape{8, conversion::rne_fp16},
    split_shape{4, conversion::rz_fp32},
};

/// The 32-bit sums among which the products of a step are divided. A term is below 2^(F + 2), so
/// one sum holds 8 of them and the accumulator, which is below 2^(F + 1).
constexpr int split_sums(int length) { return length < 16 ? 1 : 2; }

/// Exponents of units, the last bits of terms, for which two multiplications by floats raise a sum
/// to its accumulator: 2^split_scale, and a power of two that is normal, as is its inverse.
inline constexpr int split_scale = -32;
inline constexpr int split_least_unit = -126 + split_scale;
inline constexpr int split_most_unit = 126 + split_scale;

/// Whether there is a shape for `r`, products of two significands fit in a float, terms fit in
/// their sums, and no unit is below the least.
constexpr bool takes_split(const step_rule& r) {
    if (r.fraction_bits > 25 || r.product_fraction_bits > 22 || r.zero != zero_sign::plus ||
        r.underflow != zero_sign::kept || r.exponent_floor - r.fraction_bits < split_least_unit) {
        return false;
    }
    // 16 terms and an accumulator: (2 - 2^-4)^2 is below 4 by more than an 8th.
    if (r.length > 16 && r.fraction_bits > 24 && r.product_fraction_bits > 8) return false;
    return std::ranges::any_of(split_shapes, [&](const split_shape& s) {
        return r.length == s.length && r.convert == s.convert;
    });
}

/// Exponents below the largest of a row that a float relative to it may have: products of two, and
/// the power of two that raises them to terms, stay normal.
inline constexpr int split_range = 48;

/// The exponent of zero: below every other, even with any exponent added.
inline constexpr std::int16_t split_zero = -16384;

/// The base of an unusual row: one with NaN, infinity or exponents of a wider range. Larger than
/// every other base.
inline constexpr std::int32_t split_unusual = 1 << 20;

/// Bytes of a row's factors of a step: floats, exponents of 16 bits, the base. A multiple of 16.
MX_HD constexpr unsigned split_bytes(int length) {
    return (6 * static_cast<unsigned>(length) + 4 + 15) / 16 * 16;
}

/// The split factors of a row in a step of `length` products, at an address that 16 divides. In a
/// usual row, factor k is value(k) * 2^base with the fraction bits of the operand, in others
/// value(k) * 2^exponent(k).
template <int length>
class split_row {
  public:
    MX_HD explicit split_row(const std::byte* at) : at_(at) {}

    /// Four values, or as many exponents as fit in as many bytes, from `k` on.
    struct alignas(16) values {
        float v[4];
    };
    static constexpr unsigned exponents_at_once = length < 8 ? 4 : 8;
    struct alignas(2 * exponents_at_once) exponent_pairs {
        std::uint32_t v[exponents_at_once / 2];
    };
    MX_HD values values_from(unsigned k) const {
        return *reinterpret_cast<const values*>(at_ + 4 * k);
    }
    MX_HD exponent_pairs exponents_from(unsigned k) const {
        return *reinterpret_cast<const exponent_pairs*>(at_ + 4 * length + 2 * k);
    }
    MX_HD std::int32_t base() const {
        return *reinterpret_cast<const std::int32_t*>(at_ + 6 * length);
    }

    /// The factor itself; the sign of zero is lost.
    MX_HD factor operator[](int k) const {
        const float value = reinterpret_cast<const float*>(at_)[k];
        factor f;
        f.exponent = reinterpret_cast<const std::int16_t*>(at_ + 4 * length)[k];
        f.negative = value < 0;
        if (base::is_nan(value)) {
            f.what = value_class::nan;
        } else if (!base::is_finite(value)) {
            f.what = value_class::infinite;
            f.significand = f.negative ? -1 : 1;
        } else if (value != 0) {
            const int up = this->base() == split_unusual ? 0 : this->base() - f.exponent;
            f.significand = static_cast<std::int32_t>(value * base::exact_pow2f(up));
        }
        return f;
    }

  private:
    const std::byte* at_;
};

/// Splits the factors of a row in a step of `length` products into split_bytes(length) bytes.
inline void split(const factor* f, int length, std::byte* to) {
    std::int32_t top = 2 * split_zero, least = -top;
    bool unusual = false;
    for (int k = 0; k < length; ++k) {
        unusual = unusual || f[k].what != value_class::finite;
        if (f[k].significand == 0) continue;
        top = top < f[k].exponent ? f[k].exponent : top;
        least = least > f[k].exponent ? f[k].exponent : least;
    }
    const bool zeros = top < least;
    unusual = unusual || (!zeros && top - least > split_range);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    auto* const value = reinterpret_cast<float*>(to);
    auto* const exponent = reinterpret_cast<std::int16_t*>(to + 4 * length);
    for (int k = 0; k < length; ++k) {
        const auto significand = static_cast<float>(f[k].significand);
        const bool zero = f[k].significand == 0;
        value[k] = f[k].what == value_class::nan        ? base::quiet_nan()
                   : f[k].what == value_class::infinite ? significand * infinity
                   : zero || unusual                    ? significand
                                     : significand * base::exact_pow2f(f[k].exponent - top);
        exponent[k] = zero ? split_zero : f[k].exponent;
    }
    *reinterpret_cast<std::int32_t*>(to + 6 * length) = unusual ? split_unusual : zeros ? 0 : top;
}

/// The value of accumulator bits.
template <conversion convert>
MX_HD inline float split_accumulator(std::uint32_t bits) {
    if constexpr (convert == conversion::rne_fp16) return float_of_half(bits);
    return base::float_from_bits(bits);
}

/// An exact sum of integers of 32 bits: high * 2^16 + low.
struct split_sum {
    std::int32_t high = 0;
    std::uint32_t low = 0;  ///< at most 16 bits of each

    MX_HD void add(std::int32_t x) {
        high += x >> 16;
        low += static_cast<std::uint32_t>(x) & 0xffffu;
    }
    /// `high` and `low` times 2^split_scale: as last bits of a power of two, minus that.
    MX_HD float upper() const {
        return base::float_from_bits(0x4b400000u + static_cast<std::uint32_t>(high)) - 0x1.8p23F;
    }
    MX_HD float lower() const { return base::float_from_bits(0x3b000000u + low) - 0x1p-9F; }
};

/// A split sum times 2^split_scale, and other sums as they are, in three roundings.
MX_HD inline float float_toward_zero(const split_sum& s) {
    return sum_toward_zero(s.upper(), 0x1p-16F, s.lower());
}
MX_HD inline float float_downward(const split_sum& s) {
    return sum_downward(s.upper(), 0x1p-16F, s.lower());
}
MX_HD inline float float_upward(const split_sum& s) {
    return sum_upward(s.upper(), 0x1p-16F, s.lower());
}

/// The accumulator for a sum, `unit` being 2^-split_scale times the value of 1.
template <conversion convert, typename Sum>
MX_HD inline std::uint32_t split_result(const Sum& sum, float unit) {
    constexpr float scale = std::is_same_v<Sum, split_sum> ? 1 : 0x1p-32F;  // 2^split_scale
    if constexpr (convert == conversion::rne_fp16) {
        // Rounded to odd first, so that the second rounding is as good as the only one.
        const float below = float_downward(sum);
        const float odd = (base::bits_of(below) & 1u) != 0 ? below : float_upward(sum);
        return half_of_float(odd * scale * unit);
    }
    const float result = product_toward_zero(float_toward_zero(sum) * scale, unit);
    return convert == conversion::rz_e8m13 ? base::bits_of(result) & ~0x3ffu
                                           : base::bits_of(result);
}

/// fused_step for split rows.
template <int length>
MX_HD_CALL std::uint32_t step_of_split(const step_rule& r, const std::byte* a, const std::byte* b,
                                       std::uint32_t c) {
    return fused_step(r, split_row<length>(a), split_row<length>(b), c);
}

/// The step for `rows` rows of A, `a_next` bytes apart, and `cols` rows of B.
template <conversion convert, int length, int rows, int cols>
MX_HD inline void split_step(const step_rule& r, const std::byte* a, unsigned a_next,
                             const std::byte* b, unsigned b_next, std::uint32_t (&c)[rows][cols]) {
    using row = split_row<length>;
    const auto floor = static_cast<std::uint32_t>(r.exponent_floor);
    std::uint32_t pair_top[rows][cols];
    MX_UNROLL
    for (int i = 0; i < rows; ++i) {
        MX_UNROLL
        for (int j = 0; j < cols; ++j) pair_top[i][j] = floor << 16 | (floor & 0xffffu);
    }
    MX_UNROLL
    for (unsigned k = 0; k < length; k += row::exponents_at_once) {
        typename row::exponent_pairs eb[cols];
        MX_UNROLL
        for (unsigned j = 0; j < cols; ++j) eb[j] = row(b + j * b_next).exponents_from(k);
        MX_UNROLL
        for (unsigned i = 0; i < rows; ++i) {
            const typename row::exponent_pairs ea = row(a + i * a_next).exponents_from(k);
            MX_UNROLL
            for (int j = 0; j < cols; ++j) {
                MX_UNROLL
                for (unsigned p = 0; p < row::exponents_at_once / 2; ++p) {
                    pair_top[i][j] = larger_of_sums(ea.v[p], eb[j].v[p], pair_top[i][j]);
                }
            }
        }
    }
    int base_b[cols], most = 0;
    MX_UNROLL
    for (unsigned j = 0; j < cols; ++j) {
        base_b[j] = row(b + j * b_next).base();
        most = larger(most, base_b[j]);
    }
    // Exponents plus 127, as the fields of floats have them.
    constexpr int least = target_of(convert).least_exponent + 127;
    const int raise = r.fraction_bits - r.product_fraction_bits + 127;
    // Added to a field, not to an exponent: an instruction less.
    const auto unit_of_0 = static_cast<std::uint32_t>(-r.fraction_bits - split_scale) << 23;
    float unit[rows][cols], power[rows][cols];
    MX_UNROLL
    for (unsigned i = 0; i < rows; ++i) {
        const int base_a = row(a + i * a_next).base();
        most = larger(most, base_a);
        MX_UNROLL
        for (int j = 0; j < cols; ++j) {
            int top = larger_half(pair_top[i][j]) + 127;
            const float start = split_accumulator<convert>(c[i][j]);
            if (start != 0) top = larger(top, larger(exponent_field(start), least));
            most = larger(most, top);
            unit[i][j] = base::float_from_bits((static_cast<std::uint32_t>(top) << 23) + unit_of_0);
            power[i][j] = power_of_two(larger(base_a + base_b[j] + raise - top, -126));
        }
    }
    // Rare: an unusual row, or an accumulator that is large, infinite or NaN.
    if (most - r.fraction_bits > split_most_unit + 127) {
        MX_UNROLL
        for (unsigned i = 0; i < rows; ++i) {
            MX_UNROLL
            for (unsigned j = 0; j < cols; ++j) {
                c[i][j] = step_of_split<length>(r, a + i * a_next, b + j * b_next, c[i][j]);
            }
        }
        return;
    }
    constexpr int sums = split_sums(length);
    std::uint32_t sum[sums][rows][cols] = {};
    MX_UNROLL
    for (int i = 0; i < rows; ++i) {
        MX_UNROLL
        for (int j = 0; j < cols; ++j) {
            const float start = split_accumulator<convert>(c[i][j]);
            sum[0][i][j] = static_cast<std::uint32_t>(
                truncated(start * inverse_power_of_two(unit[i][j]) * 0x1p32F));  // 2^-split_scale
        }
    }
    MX_UNROLL
    for (unsigned k = 0; k < length; k += 4) {
        typename row::values vb[cols];
        MX_UNROLL
        for (unsigned j = 0; j < cols; ++j) vb[j] = row(b + j * b_next).values_from(k);
        MX_UNROLL
        for (unsigned i = 0; i < rows; ++i) {
            const typename row::values va = row(a + i * a_next).values_from(k);
            MX_UNROLL
            for (int j = 0; j < cols; ++j) {
                MX_UNROLL
                for (int n = 0; n < 4; ++n) {
                    const float product = va.v[n] * vb[j].v[n];
                    sum[k * sums / length][i][j] +=
                        static_cast<std::uint32_t>(truncated(product * power[i][j]));
                }
            }
        }
    }
    MX_UNROLL
    for (int i = 0; i < rows; ++i) {
        MX_UNROLL
        for (int j = 0; j < cols; ++j) {
            const auto first = static_cast<std::int32_t>(sum[0][i][j]);
            if constexpr (sums == 1) {
                c[i][j] = split_result<convert>(first, unit[i][j]);
            } else {
                split_sum total;
                total.add(first);
                total.add(static_cast<std::int32_t>(sum[1][i][j]));
                c[i][j] = split_result<convert>(total, unit[i][j]);
            }
        }
    }
}

}  // namespace mx::gemm

// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)
#undef MX_UNROLL
