// SPDX-License-Identifier: Apache-2.0
// Common to the steps of all models: their parameters, detection of NaN and Inf among terms,
// shifts, and conversion between exact sums and accumulator bits.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/base/macros.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/factor.hpp"

namespace mx::gemm {

// The integer parameters of a model that a step needs, small enough to pass to a kernel.

struct step_rule {
    int length = 0;              ///< L
    int group_length = 0;        ///< products per exact group
    int fraction_bits = 0;       ///< F
    int wide_fraction_bits = 0;  ///< F2
    int exponent_floor = 0;
    int product_fraction_bits = 0;  ///< of significand times significand, scales included
    conversion convert = conversion::rz_fp32;
    zero_sign zero = zero_sign::plus;
    zero_sign underflow = zero_sign::kept;
};

/// The rule of `m` for operands whose products have `product_fraction_bits` fraction bits.
MX_HD inline step_rule rule_of(const accumulator& m, int product_fraction_bits) {
    return {m.fused_length,   m.group_length,        m.fraction_bits, m.wide_fraction_bits,
            m.exponent_floor, product_fraction_bits, m.convert,       m.zero,
            m.underflow};
}

// Conversion from the exact sum of a step to accumulator bits, and back.

inline constexpr std::uint32_t f32_canonical_nan = 0x7fffffffu;
inline constexpr std::uint32_t f16_canonical_nan = 0x7fffu;

/// Whether accumulators of this conversion are f16.
MX_HD constexpr bool gives_f16(conversion c) { return c == conversion::rne_fp16; }

/// The format of the result of a conversion.
struct target {
    int mantissa_bits;  ///< kept
    int unused_bits;    ///< zeros below them in the code
    int least_exponent;
    int largest_exponent;
    int sign_position;
    bool nearest;  ///< to nearest even; otherwise toward zero
};
MX_HD constexpr target target_of(conversion c) {
    if (c == conversion::rne_fp16) return {10, 0, -14, 15, 15, true};
    if (c == conversion::rz_e8m13) return {13, 10, -126, 127, 31, false};
    return {23, 0, -126, 127, 31, c == conversion::rne_fp32};
}

MX_HD constexpr std::uint32_t infinity_bits(const target& t, bool negative) {
    const auto fields = static_cast<std::uint32_t>(t.largest_exponent - t.least_exponent + 2);
    return fields << (t.mantissa_bits + t.unused_bits) | (negative ? 1u : 0u) << t.sign_position;
}

MX_HD constexpr std::uint32_t canonical_nan(conversion c) {
    return gives_f16(c) ? f16_canonical_nan : f32_canonical_nan;
}

/// Position of the highest set bit of u > 0.
MX_HD inline int floor_log2_64(std::uint64_t u) {
    const auto high = static_cast<std::uint32_t>(u >> 32);
    return high != 0 ? 32 + base::floor_log2(high)
                     : base::floor_log2(static_cast<std::uint32_t>(u));
}

/// The bits of +-magnitude * 2^q. Magnitudes beyond the largest exponent become Inf, also when
/// rounding toward zero; a result that rounds to zero has the sign given by `underflow`.
MX_HD inline std::uint32_t round_to(const target& t, std::uint64_t magnitude, int q, bool negative,
                                    zero_sign underflow) {
    int e = floor_log2_64(magnitude) + q;
    if (e > t.largest_exponent) return infinity_bits(t, negative);
    if (e < t.least_exponent) e = t.least_exponent;
    const int shift = e - t.mantissa_bits - q;
    std::uint64_t kept = 0;
    if (shift <= 0) {
        // At most mantissa_bits, because e is at least the exponent of the magnitude.
        // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult)
        kept = magnitude << -shift;
    } else if (shift < 64) {
        kept = magnitude >> shift;
        const std::uint64_t rest = magnitude - (kept << shift);
        const std::uint64_t middle = std::uint64_t{1} << (shift - 1);
        if (t.nearest && (rest > middle || (rest == middle && (kept & 1u) != 0))) ++kept;
    }
    if (kept == 0 && underflow == zero_sign::plus) negative = false;
    // The leading bit of a normal number adds the 1 that its exponent field lacks here, and a carry
    // of rounding propagates into the field, up to Inf.
    const std::uint32_t field = static_cast<std::uint32_t>(e - t.least_exponent);
    const std::uint32_t code = (field << t.mantissa_bits) + static_cast<std::uint32_t>(kept);
    return code << t.unused_bits | (negative ? 1u : 0u) << t.sign_position;
}

/// The accumulator for an exact sum * 2^q. `minus_zeros`: every term was -0.
MX_HD inline std::uint32_t convert_sum(const step_rule& r, std::int64_t sum, int q,
                                       bool minus_zeros) {
    const target t = target_of(r.convert);
    if (sum == 0) return minus_zeros && r.zero == zero_sign::kept ? 1u << t.sign_position : 0u;
    const bool negative = sum < 0;
    const auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum);
    return round_to(t, magnitude, q, negative, r.underflow);
}

/// f16 bits of float32 bits, to nearest even, Inf beyond the largest.
MX_HD inline std::uint32_t f16_from_f32(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & base::f32_magnitude_mask;
    const bool negative = (bits & base::f32_sign_mask) != 0;
    const target t = target_of(conversion::rne_fp16);
    if (magnitude > base::f32_infinity) return f16_canonical_nan;
    if (magnitude == base::f32_infinity) return infinity_bits(t, negative);
    if (magnitude == 0) return bits >> 16;
    const base::decomposed x = base::decompose(magnitude);
    return round_to(t, x.significand, x.exponent, negative, zero_sign::kept);
}

/// Fraction bits of an accumulator's significand.
MX_HD constexpr int accumulator_fraction_bits(conversion c) { return gives_f16(c) ? 10 : 23; }

/// Accumulator bits as a term.
MX_HD inline factor unpack_accumulator(conversion c, std::uint32_t bits) {
    constexpr operand_format f32{"f32", takes_f32, 8, 23, 127, operand_specials::ieee, 0};
    constexpr operand_format f16{"f16", takes_f16, 5, 10, 15, operand_specials::ieee, 0};
    return unpack(gives_f16(c) ? f16 : f32, subnormal_alignment::least_exponent, bits);
}

/// Special cases determined by the codes, before any arithmetic.
struct special_terms {
    bool nan = false;
    bool plus_infinity = false;
    bool minus_infinity = false;

    MX_HD void add_infinity(bool negative) {
        plus_infinity = plus_infinity || !negative;
        minus_infinity = minus_infinity || negative;
    }
    /// Adds one product.
    MX_HD void add(const factor& a, const factor& b) {
        if (a.what == value_class::finite && b.what == value_class::finite) return;
        const bool any_nan = a.what == value_class::nan || b.what == value_class::nan;
        if (any_nan || a.significand == 0 || b.significand == 0) {
            nan = true;
        } else {
            add_infinity(a.negative != b.negative);
        }
    }
    /// Adds the accumulator.
    MX_HD void add(const factor& c) {
        if (c.what == value_class::nan) nan = true;
        if (c.what == value_class::infinite) add_infinity(c.negative);
    }
    MX_HD bool any() const { return nan || plus_infinity || minus_infinity; }
    MX_HD std::uint32_t result(conversion c) const {
        if (nan || (plus_infinity && minus_infinity)) return canonical_nan(c);
        return infinity_bits(target_of(c), minus_infinity);
    }
};

/// term * 2^shift as an integer, rounded toward zero. Zero may have any shift.
MX_HD inline std::int64_t shifted_toward_zero(std::int64_t term, int shift) {
    if (term == 0) return 0;
    if (shift >= 0) return term * (std::int64_t{1} << shift);
    if (shift < -62) return 0;
    // Compensates for the shift of negative terms, which rounds down.
    const std::int64_t cut = (std::int64_t{1} << -shift) - 1;
    return (term + ((term >> 63) & cut)) >> -shift;
}

/// term * 2^shift as an integer, rounded toward minus infinity. Zero may have any shift.
MX_HD inline std::int64_t shifted_down(std::int64_t term, int shift) {
    if (term == 0) return 0;
    if (shift >= 0) return term * (std::int64_t{1} << shift);
    return term >> (shift < -63 ? 63 : -shift);
}

MX_HD inline std::int64_t product_of(const factor& a, const factor& b) {
    return std::int64_t{a.significand} * b.significand;
}
MX_HD inline int exponent_of(const factor& a, const factor& b) {
    return int{a.exponent} + int{b.exponent};
}

}  // namespace mx::gemm
