// SPDX-License-Identifier: Apache-2.0
// From the exact sum of a step to the bits of an accumulator, and back.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/gemm/factor.hpp"
#include "libmx/gemm/step_rule.hpp"

namespace mx::gemm {

inline constexpr std::uint32_t f32_canonical_nan = 0x7fffffffu;
inline constexpr std::uint32_t f16_canonical_nan = 0x7fffu;

/// Whether accumulators of this conversion are f16.
MX_HD constexpr bool gives_f16(conversion c) { return c == conversion::rne_fp16; }

/// Where a conversion puts its result.
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

/// The bits of +-magnitude * 2^q. Magnitudes beyond the largest exponent are Inf, toward zero as
/// well; what rounds to zero takes the sign that `underflow` says.
MX_HD inline std::uint32_t round_to(const target& t, std::uint64_t magnitude, int q, bool negative,
                                    zero_sign underflow) {
    int e = floor_log2_64(magnitude) + q;
    if (e > t.largest_exponent) return infinity_bits(t, negative);
    if (e < t.least_exponent) e = t.least_exponent;
    const int shift = e - t.mantissa_bits - q;
    std::uint64_t kept = 0;
    if (shift <= 0) {
        kept = magnitude << -shift;
    } else if (shift < 64) {
        kept = magnitude >> shift;
        const std::uint64_t rest = magnitude - (kept << shift);
        const std::uint64_t middle = std::uint64_t{1} << (shift - 1);
        if (t.nearest && (rest > middle || (rest == middle && (kept & 1u) != 0))) ++kept;
    }
    if (kept == 0 && underflow == zero_sign::plus) negative = false;
    // The leading bit of a normal number adds the one that its exponent field lacks here, and the
    // carry of a rounding walks on into the field, up to Inf.
    const std::uint32_t field = static_cast<std::uint32_t>(e - t.least_exponent);
    const std::uint32_t code = (field << t.mantissa_bits) + static_cast<std::uint32_t>(kept);
    return code << t.unused_bits | (negative ? 1u : 0u) << t.sign_position;
}

/// The accumulator that follows from an exact sum * 2^q. `minus_zeros`: every term was -0.
MX_HD inline std::uint32_t convert_sum(const step_rule& r, std::int64_t sum, int q,
                                       bool minus_zeros) {
    const target t = target_of(r.convert);
    if (sum == 0) {
        return minus_zeros && r.zero == zero_sign::kept ? 1u << t.sign_position : 0u;
    }
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

}  // namespace mx::gemm
