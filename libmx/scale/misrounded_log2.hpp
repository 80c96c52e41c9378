// SPDX-License-Identifier: Apache-2.0
// floor and ceil of a log2 that was rounded to float32 or bfloat16 first, without calling log2.
//
// log2 of a number next to 2^k rounds to k, so implementations that take the floor (ceiling) of a
// float32 log2 are one too high (low) for the few numbers just below (above) a power of two. How
// many follows from the spacing of the format at k: x = 2^k (1 - s) has log2 x = k - s/ln 2 - ...,
// which rounds to k when it is within half a spacing of k. No tie occurs, log2 being irrational.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"

namespace mx::scale {

/// A binary format of `precision` significant bits in which a log2 is rounded.
struct log2_format {
    int precision;  ///< 24 for float32, 8 for bfloat16
};
inline constexpr log2_format log2_in_float32{24};
inline constexpr log2_format log2_in_bfloat16{8};

namespace detail {

inline constexpr double ln2 = 0x1.62e42fefa39efp-1;

/// Half the spacing of the format between the integer k (not 0) and its neighbour, below it or
/// above it on the number line.
MX_HD constexpr double half_spacing(log2_format f, int k, bool below) {
    const int magnitude = k < 0 ? -k : k;
    int binade = 0;
    while ((magnitude >> (binade + 1)) != 0) ++binade;
    const bool toward_zero = (k > 0) == below;
    const bool power_of_two = magnitude == 1 << binade;
    int exponent = binade - f.precision + (toward_zero && power_of_two ? -1 : 0);
    double half = 1.0;  // of 2^(binade + 1 - precision)
    for (; exponent < 0; ++exponent) half *= 0.5;
    return half;
}

/// -ln(1 - s) (below) or ln(1 + s) (above) for the few small s of interest: s < 1/16.
MX_HD constexpr double log_distance(double s, bool below) {
    const double t = below ? s : -s;
    double sum = 0;
    for (int i = 12; i >= 1; --i) sum = t * (sum + 1.0 / i);
    return below ? sum : -sum;
}

/// How many numbers of the format's grid next to 2^k (below or above) have a rounded log2 of k.
/// `step`: the distance of neighbours there, relative to 2^k.
MX_HD constexpr int caught(log2_format f, int k, double step, bool below) {
    if (k == 0) return 0;  // near 0 the rounded log2 has any precision needed
    const double reach = half_spacing(f, k, below) * ln2;
    int n = 0;
    while (log_distance((n + 1) * step, below) < reach) ++n;
    return n;
}

/// 2^e for -60 <= e <= 0, usable in constant expressions.
MX_HD constexpr double small_power(int e) {
    double p = 1.0;
    for (; e < 0; ++e) p *= 0.5;
    return p;
}

/// float32 bits of 2^k, -149 <= k <= 128 (Inf).
MX_HD constexpr std::uint32_t bits_of_power(int k) {
    return k >= -126 ? static_cast<std::uint32_t>(k + 127) << 23 : 1u << (k + 149);
}

/// The exponent of the unit in the last place of float32 numbers in [2^e, 2^(e+1)).
MX_HD constexpr int ulp_exponent(int e) { return e - 23 > -149 ? e - 23 : -149; }

}  // namespace detail

/// floor(rounded log2) of the positive finite float32 with bits `u` and floor(log2) `e`. For
/// bfloat16 the number is one of bfloat16.
MX_HD inline int floor_rounded_log2(log2_format f, std::uint32_t u, int e) {
    const bool half_width = f.precision < 24;
    const std::uint32_t distance = detail::bits_of_power(e + 1) - u;
    const auto n = static_cast<int>(half_width ? distance >> 16 : distance);
    const int unit = detail::ulp_exponent(e) + (half_width ? 16 : 0);
    if (n > 64) return e;
    const double step = detail::small_power(unit - (e + 1));
    return n <= detail::caught(f, e + 1, step, true) ? e + 1 : e;
}

/// ceil(rounded log2) of the positive finite float32 with bits `u` and floor(log2) `e`.
MX_HD inline int ceil_rounded_log2(log2_format f, std::uint32_t u, int e) {
    const bool half_width = f.precision < 24;
    const std::uint32_t distance = u - detail::bits_of_power(e);
    const auto n = static_cast<int>(half_width ? distance >> 16 : distance);
    if (n == 0) return e;
    if (n > 64) return e + 1;
    const int unit = detail::ulp_exponent(e) + (half_width ? 16 : 0);
    const double step = detail::small_power(unit - e);
    return n <= detail::caught(f, e, step, false) ? e : e + 1;
}

}  // namespace mx::scale
