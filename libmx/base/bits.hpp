// SPDX-License-Identifier: Apache-2.0
// Bit patterns of float32 and exact powers of two, for host and device.
#pragma once

#include <cstdint>
#include <cstring>

#include "libmx/base/macros.hpp"

namespace mx::base {

inline constexpr std::uint32_t f32_sign_mask = 0x80000000u;
inline constexpr std::uint32_t f32_magnitude_mask = 0x7fffffffu;
inline constexpr std::uint32_t f32_mantissa_mask = 0x007fffffu;
inline constexpr std::uint32_t f32_infinity = 0x7f800000u;

/// The bit pattern of x.
MX_HD inline std::uint32_t bits_of(float x) {
    std::uint32_t u;
    std::memcpy(&u, &x, sizeof u);
    return u;
}
MX_HD inline std::uint64_t bits_of(double x) {
    std::uint64_t u;
    std::memcpy(&u, &x, sizeof u);
    return u;
}

/// The float32 whose bit pattern is u.
MX_HD inline float float_from_bits(std::uint32_t u) {
    float x;
    std::memcpy(&x, &u, sizeof x);
    return x;
}
MX_HD inline double double_from_bits(std::uint64_t u) {
    double x;
    std::memcpy(&x, &u, sizeof x);
    return x;
}

/// Whether x is a NaN, and whether it is neither a NaN nor infinite.
MX_HD inline bool is_nan(float x) { return (bits_of(x) & f32_magnitude_mask) > f32_infinity; }
MX_HD inline bool is_finite(float x) { return (bits_of(x) & f32_magnitude_mask) < f32_infinity; }

/// One NaN for all processors: arithmetic produces different ones on different processors.
MX_HD inline float quiet_nan() { return float_from_bits(0x7fc00000u); }

/// Position of the highest set bit of u > 0 (floor of log2).
MX_HD inline int floor_log2(std::uint32_t u) {
#if defined(__CUDA_ARCH__)
    return 31 - __clz(static_cast<int>(u));
#else
    return 31 - __builtin_clz(u);
#endif
}

/// 2^e exactly as a double, -1022 <= e <= 1023.
MX_HD inline double exact_pow2(int e) {
    return double_from_bits(static_cast<std::uint64_t>(e + 1023) << 52);
}

/// 2^e exactly as a float32, -149 <= e <= 127 (subnormal below -126).
MX_HD inline float exact_pow2f(int e) {
    return float_from_bits(e >= -126 ? static_cast<std::uint32_t>(e + 127) << 23 : 1u << (e + 149));
}

/// A finite non-zero float32 magnitude as significand * 2^exponent with a 24-bit normalized
/// significand (bit 23 set), subnormals included.
struct decomposed {
    std::uint32_t significand;
    int exponent;
};

/// Decomposes the magnitude bits `u` (sign cleared, finite, not zero).
MX_HD inline decomposed decompose(std::uint32_t u) {
    const int field = static_cast<int>(u >> 23);
    const std::uint32_t mantissa = u & f32_mantissa_mask;
    if (field != 0) return {mantissa | 0x00800000u, field - 150};
    const int shift = 23 - floor_log2(mantissa);
    return {mantissa << shift, -149 - shift};
}

}  // namespace mx::base
