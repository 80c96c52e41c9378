// SPDX-License-Identifier: Apache-2.0
// Pairs of bfloat16: each result is the exact one (a double represents it, or the part that
// decides) rounded to nearest even.
#pragma once

#include "libmx/base/bits.hpp"

struct __nv_bfloat162 {
    std::uint16_t x, y;
};

namespace card {

inline double wide(std::uint16_t half) {
    return mx::base::float_from_bits(std::uint32_t{half} << 16);
}

// Multiples of the last place of 8 bits, or of the least subnormal number, 2^-133.
inline std::uint16_t narrow(double x) {
    int exponent = 0;
    if (!std::isfinite(x))
        return static_cast<std::uint16_t>(std::isnan(x) ? 0x7fff : x < 0 ? 0xff80 : 0x7f80);
    std::frexp(x, &exponent);
    const int place = std::max(exponent - 8, -133);
    const double rounded = std::ldexp(std::nearbyint(std::ldexp(x, -place)), place);
    return static_cast<std::uint16_t>(mx::base::bits_of(static_cast<float>(rounded)) >> 16);
}

template <typename Operation>
__nv_bfloat162 each_half(__nv_bfloat162 a, __nv_bfloat162 b, Operation operation) {
    return {narrow(operation(wide(a.x), wide(b.x))), narrow(operation(wide(a.y), wide(b.y)))};
}

}  // namespace card

inline __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return card::each_half(a, b, [](double x, double y) { return x * y; });
}
inline __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return card::each_half(a, b, [](double x, double y) { return x + y; });
}
inline __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return card::each_half(a, b, [](double x, double y) { return x - y; });
}
inline __nv_bfloat162 __hmin2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return card::each_half(a, b, [](double x, double y) { return std::fmin(x, y); });
}
inline __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b) {
    return card::each_half(a, b, [](double x, double y) { return std::fmax(x, y); });
}
inline __nv_bfloat162 __habs2(__nv_bfloat162 a) {
    return {static_cast<std::uint16_t>(a.x & 0x7fffu), static_cast<std::uint16_t>(a.y & 0x7fffu)};
}
inline unsigned __hge2_mask(__nv_bfloat162 a, __nv_bfloat162 b) {
    return (card::wide(a.x) >= card::wide(b.x) ? 0xffffu : 0u) |
           (card::wide(a.y) >= card::wide(b.y) ? 0xffff0000u : 0u);
}
