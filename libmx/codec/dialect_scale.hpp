// SPDX-License-Identifier: Apache-2.0
// The shared scale of a block as a dialect computes it, for rules that choose powers of two. For
// host and device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "libmx/base/bits.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/ocp_block.hpp"
#include "libmx/scale/misrounded_log2.hpp"
#include "libmx/scale/rule_step.hpp"

namespace mx::codec {

/// A chosen scale. Dialects that store a float32 scale have no code (-1); the scale may then be any
/// float32, including Inf.
struct chosen_scale {
    int code;            ///< E8M0 code, or -1
    float value;         ///< 2^(code - 127), NaN for code 255, or the float32 scale
    bool nan_quotients;  ///< the code represents NaN: elements are those of a NaN
};

namespace dialect_steps {

inline constexpr std::uint32_t largest_finite = base::f32_infinity - 1u;
inline constexpr std::uint32_t smallest_normal = 0x00800000u;
// Exponents that represent Inf, zero and NaN, beyond every exponent of a float32.
inline constexpr int exponent_of_inf = 1000;
inline constexpr int exponent_of_zero = -1000;
inline constexpr int exponent_of_nan = -2000;  // and below

struct log2_ends {
    int floor, ceil;
};

// floor and ceil of log2 as the dialect computes it, of positive or infinite bits.
MX_HD_CALL inline log2_ends log2_of(log2_kind kind, std::uint32_t u) {
    if (u >= base::f32_infinity) return {exponent_of_inf, exponent_of_inf};
    if (u == 0) return {exponent_of_zero, exponent_of_zero};
    const scale::binade b = scale::binade_of(u);
    if (kind == log2_kind::exact) return {b.exponent, b.exponent + (b.mantissa != 0 ? 1 : 0)};
    const scale::log2_format f =
        kind == log2_kind::float32 ? scale::log2_in_float32 : scale::log2_in_bfloat16;
    return {scale::floor_rounded_log2(f, u, b.exponent),
            scale::ceil_rounded_log2(f, u, b.exponent)};
}

// floor(l + 1/2) in float32, l the float32 log2. The threshold is sqrt 2, less the effect of
// roundings: half a spacing below e + 1/2, and one and a half spacings where l + 1/2 also rounds up
// to 1.
MX_HD inline int nearest_float32_log2(std::uint32_t u) {
    if (u >= base::f32_infinity) return exponent_of_inf;
    const scale::binade b = scale::binade_of(u);
    const double threshold = b.exponent + 0.5;
    const double magnitude = threshold < 0 ? -threshold : threshold;
    int binade = -1;
    while (magnitude >= base::exact_pow2(binade + 1)) ++binade;
    double reach = base::exact_pow2(binade - 24);
    if (b.exponent == 0) reach = 1.5 * base::exact_pow2(-25);
    constexpr double sqrt2 = 0x1.6a09e667f3bcdp0;
    constexpr double ln2 = 0x1.62e42fefa39efp-1;
    const double t = reach * ln2;
    const double from = sqrt2 * (1 - t + t * t / 2);
    const double significand = 1.0 + static_cast<double>(b.mantissa) * 0x1p-23;
    return b.exponent + (significand >= from ? 1 : 0);
}

// A power of two as float32 arithmetic computes it.
MX_HD inline float float_power(int exponent) {
    if (exponent > 127) return std::numeric_limits<float>::infinity();
    return exponent < -149 ? 0.0f : base::exact_pow2f(exponent);
}

// ceil(log2(quotient)) from the bits of the float32 quotient; subnormals count as 2^-127.
MX_HD inline int exponent_rounded_up(float quotient) {
    const std::uint32_t u = base::bits_of(quotient);
    if (u >= base::f32_infinity) return exponent_of_inf;
    const std::uint32_t field = u >> 23;
    const std::uint32_t mantissa = u & base::f32_mantissa_mask;
    const bool up = field == 0 ? mantissa > 0x00400000u : mantissa != 0;
    return static_cast<int>(field) - 127 + (up ? 1 : 0);
}

// The exponent of the scale before clamping.
MX_HD inline int dialect_exponent(const block_params& p, std::uint32_t amax, std::uint32_t draw) {
    const dialect_step& rule = p.dialect_rule;
    if (rule.exponent == exponent_kind::exact) {
        const int code = scale::scale_code(p.step, amax);
        return code == format::e8m0_nan ? exponent_of_inf : code - format::e8m0_bias;
    }
    std::uint32_t u = amax + rule.added;
    if (rule.drawn_bits != 0) u += draw >> (32 - rule.drawn_bits);
    if (u > base::f32_infinity) {
        if (rule.carries_to_nan) return exponent_of_nan - rule.emax;
        u = base::f32_infinity;
    }
    if (rule.factor != 1.0f || rule.divisor != 1.0f) {
        u = base::bits_of(base::float_from_bits(u) * rule.factor / rule.divisor);
    }
    if (u == base::f32_infinity && p.by->inf.value == inf_amax::power_128) return 128 - rule.emax;
    switch (rule.exponent) {
        case exponent_kind::ceil:
            return log2_of(rule.log2, u).ceil - rule.emax;
        case exponent_kind::nearest:
            return nearest_float32_log2(u) - rule.emax;
        case exponent_kind::rounded_up:
            return exponent_rounded_up(base::float_from_bits(u));
        default:
            return log2_of(rule.log2, u).floor - rule.emax;
    }
}

MX_HD inline chosen_scale code_of(int code, bool nan_quotients = false) {
    return {code, scale_of_code(static_cast<std::uint8_t>(code)), nan_quotients};
}

// The code of a finite or overflowing exponent.
MX_HD inline int clamp_exponent(const block_params& p, int exponent) {
    if (p.by->inf.value == inf_amax::clamp_252) exponent = std::min(exponent, 125);
    if (exponent > 127) return p.dialect_rule.saturates ? format::e8m0_max : format::e8m0_nan;
    return std::max(exponent, -127) + 127;
}

}  // namespace dialect_steps

/// The scale under the rule and dialect of `p` for a block whose maximum has the float32 bits
/// `amax_bits` (sign clear). `draw` is used by scale=stochastic only. A NaN maximum means that the
/// block contains a NaN; an infinite one, that it contains an Inf and no NaN.
MX_HD inline chosen_scale dialect_scale(const block_params& p, std::uint32_t amax_bits,
                                        std::uint32_t draw = 0) {
    using namespace dialect_steps;
    std::uint32_t amax = amax_bits;
    const dialect& by = *p.by;
    if (by.id == dialect_id::ocp) {
        return code_of(scale::scale_code(p.step, amax, draw));
    }
    const bool in_float32 = by.storage.value == scale_storage::float32;
    if (amax > base::f32_infinity) {
        if (by.nan.value == nan_amax::zero) return code_of(0, true);
        return {in_float32 ? -1 : format::e8m0_nan, base::quiet_nan(), false};
    }
    if (amax == base::f32_infinity) {
        switch (by.inf.value) {
            case inf_amax::nan:
                return code_of(format::e8m0_nan);
            case inf_amax::saturate:
                return code_of(format::e8m0_max);
            case inf_amax::clamp_252:
                return code_of(252);
            case inf_amax::keep:
                return {-1, std::numeric_limits<float>::infinity(), false};
            case inf_amax::zero:
                return code_of(0, true);
            case inf_amax::finite_max:
                amax = largest_finite;
                break;
            case inf_amax::power_128:
                break;
        }
    }
    if (amax == 0) {
        switch (by.zero.value) {
            case zero_block::code_0:
                return code_of(0);
            case zero_block::tiny_amax:
                amax = smallest_normal;
                break;
            case zero_block::f32_epsilon:
                // `even` replaces the maximum, other rules the scale.
                if (p.dialect_rule.even) amax = smallest_normal;
                break;
            case zero_block::as_1e_8:
                amax = base::bits_of(1e-8f);
                break;
        }
    }
    const int exponent = dialect_exponent(p, amax, draw);
    if (in_float32) {
        if (p.dialect_rule.even) {
            return {-1, base::exact_pow2f(std::clamp(exponent, -127, 127)), false};
        }
        const float value = float_power(exponent);
        return {-1, value == 0.0f ? 0x1p-23f : value, false};
    }
    if (by.low_byte_of_code.value) {
        return code_of(
            static_cast<std::uint8_t>(exponent == exponent_of_zero ? 0 : exponent + 127));
    }
    return code_of(clamp_exponent(p, exponent), exponent <= exponent_of_nan);
}

// Dialect systems-scaling, rule floor-bump: selects the exponents of a row of blocks to raise.

/// Whether the exponent is raised if the largest magnitude has the float32 bits `u`: it exceeds
/// 1.75 * 2^floor(log2 of it), with log2 rounded to float32.
MX_HD inline bool raises_exponent(std::uint32_t u) {
    if (u == 0 || u >= base::f32_infinity) return false;
    const int e = scale::binade_of(u).exponent;
    const int rounded = scale::floor_rounded_log2(scale::log2_in_float32, u, e);
    return static_cast<double>(base::float_from_bits(u)) > 1.75 * base::exact_pow2(rounded);
}

/// For each column of the blocks of `row` (consecutive blocks of bump.size() elements; the last one
/// may be short), whether the exponent is raised for the column's largest magnitude over all
/// blocks. Follows the code of KempnerInstitute/systems-scaling@99d244a; its paper describes one
/// maximum per block.
void bumps_of_row(std::span<const float> row, std::span<std::uint8_t> bump);

}  // namespace mx::codec
