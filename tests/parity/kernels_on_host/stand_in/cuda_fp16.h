// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/base/half.hpp"

struct __half {
    std::uint16_t bits;
};
inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline float __half2float(__half x) { return mx::base::float_from_half(x.bits); }
// A double represents the float and a multiple of the f16 grid.
inline __half __float2half_rn(float x) {
    if (std::isnan(x)) return {0x7fff};
    int exponent = 0;
    std::frexp(x, &exponent);
    const int place = std::max(exponent - 11, -24);
    const double kept = std::fabs(std::ldexp(std::nearbyint(std::ldexp(double{x}, -place)), place));
    const auto sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
    if (kept >= 65536) return {static_cast<std::uint16_t>(sign | 0x7c00)};
    return {static_cast<std::uint16_t>(
        sign | mx::base::half_saturated(static_cast<float>(kept)))};
}

struct __half2 {
    std::uint16_t x, y;
};
inline float2 __half22float2(__half2 pair) {
    return {mx::base::float_from_half(pair.x), mx::base::float_from_half(pair.y)};
}
