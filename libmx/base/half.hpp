// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 and bfloat16 as bit patterns.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"

namespace mx::base {

/// The float32 value of bfloat16 bits (exact).
MX_HD inline float float_from_bf16(std::uint16_t h) {
    return float_from_bits(static_cast<std::uint32_t>(h) << 16);
}

/// `x` rounded to bfloat16, to nearest even; NaN stays as it is.
MX_HD inline float rounded_to_bf16(float x) {
    const std::uint32_t u = bits_of(x);
    if ((u & f32_magnitude_mask) > f32_infinity) return x;
    return float_from_bits((u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u);
}

/// The float32 value of binary16 bits (exact; NaN payload kept in the upper bits).
MX_HD inline float float_from_half(std::uint16_t h) {
    const std::uint32_t sign = (h & 0x8000u) << 16;
    const std::uint32_t magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u)
        return float_from_bits(sign | f32_infinity | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x0400u) return float_from_bits(sign | ((magnitude << 13) + (112u << 23)));
    // Zero and subnormals: an integer times 2^-24, exact in float32.
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign != 0 ? -value : value;
}

/// binary16 bits of the finite float32 `x`, to nearest even, saturated to +-65504.
MX_HD inline std::uint16_t half_saturated(float x) {
    const std::uint32_t u = bits_of(x);
    const std::uint32_t sign = (u >> 16) & 0x8000u;
    const std::uint32_t magnitude = u & f32_magnitude_mask;
    std::uint32_t half = 0;
    if (magnitude < 113u << 23) {  // below 2^-14: subnormal, quantum 2^-24
        if (magnitude >= 1u << 23) {
            const decomposed d = decompose(magnitude);
            const int shift = -24 - d.exponent;  // 10 and up
            if (shift < 26) {
                const std::uint32_t kept = d.significand >> shift;
                const std::uint32_t rest = d.significand & ((1u << shift) - 1u);
                const std::uint32_t middle = 1u << (shift - 1);
                half = kept + ((rest > middle || (rest == middle && (kept & 1u) != 0)) ? 1u : 0u);
            }
        }
    } else {
        // Rounding up may carry into the exponent, which is what it should do.
        half = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
        if (half > 0x7bffu) half = 0x7bffu;
    }
    return static_cast<std::uint16_t>(sign | half);
}

/// binary16 bits of float32, to nearest even; beyond the largest value Inf; of NaN the quiet one of
/// its sign.
MX_HD inline std::uint16_t half_bits_of(float x) {
    const std::uint32_t u = bits_of(x), sign = u >> 16 & 0x8000u;
    const std::uint32_t magnitude = u & f32_magnitude_mask;
    if (magnitude > f32_infinity) return static_cast<std::uint16_t>(sign | 0x7e00u);
    // Half a step above 65504 is a tie, which rounds up to even.
    if (magnitude >= bits_of(65520.0f)) return static_cast<std::uint16_t>(sign | 0x7c00u);
    return half_saturated(x);
}

/// The same of bfloat16.
MX_HD inline std::uint16_t bf16_bits_of(float x) {
    const std::uint32_t u = bits_of(x), upper = u >> 16;
    if ((u & f32_magnitude_mask) > f32_infinity) {
        return static_cast<std::uint16_t>((upper & 0x8000u) | 0x7fc0u);
    }
    return static_cast<std::uint16_t>((u + 0x7fffu + (upper & 1u)) >> 16);
}

}  // namespace mx::base
