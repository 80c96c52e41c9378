// SPDX-License-Identifier: Apache-2.0
// Rounding x / S for a scale S that is not a power of two: the quotient of two integers, never
// formed as a float. The remainder of the division decides the rounding, so nothing is rounded
// twice.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/format/encode.hpp"

namespace mx::format {

/// A positive scale as significand * 2^exponent with a significand of exactly 32 bits: the product
/// of a float32 and an 8-bit number fits.
struct exact_scale {
    std::uint64_t significand;
    int exponent;
};

inline constexpr int exact_scale_bits = 32;

/// The scale a * b of two positive finite float32 numbers, one of which has at most 8 significant
/// bits.
MX_HD inline exact_scale exact_product(float a, float b) {
    const base::decomposed da = base::decompose(base::bits_of(a));
    const base::decomposed db = base::decompose(base::bits_of(b));
    // 48 bits with zeros below: the top one is bit 46 or 47.
    const std::uint64_t product = std::uint64_t{da.significand} * db.significand;
    const int extra = static_cast<int>(product >> 47) + 47 - exact_scale_bits;
    return {product >> extra, da.exponent + db.exponent + extra};
}

/// The value of a scale, exact.
MX_HD inline double value_of(const exact_scale& s) {
    return static_cast<double>(s.significand) * base::exact_pow2(s.exponent);
}

namespace detail {

/// floor(rest * 2^k / divisor) for rest < divisor < 2^63 and 1 <= k <= 32, a bit at a time.
MX_HD inline std::uint64_t quotient_bits(std::uint64_t rest, std::uint64_t divisor, int k) {
    std::uint64_t quotient = 0;
    for (int i = 0; i < k; ++i) {
        rest <<= 1;
        const bool one = rest >= divisor;
        if (one) rest -= divisor;
        quotient = quotient << 1 | static_cast<std::uint64_t>(one);
    }
    return quotient;
}

struct divided {
    std::uint32_t quotient;
    std::uint64_t rest;
};

/// dividend / divisor, for dividend < 2^62, divisor < 2^63 and a quotient below 2^18. No processor
/// divides 64-bit integers fast, and GPUs do it in a long function: the float32 quotient is off by
/// one at most.
MX_HD inline divided divide(std::uint64_t dividend, std::uint64_t divisor) {
    const auto near = static_cast<float>(dividend) / static_cast<float>(divisor);
    auto quotient = static_cast<std::uint32_t>(near);
    auto rest = static_cast<std::int64_t>(dividend - quotient * divisor);
    const auto step = static_cast<std::int64_t>(divisor);
    if (rest < 0) {
        --quotient;
        rest += step;
    } else if (rest >= step) {
        ++quotient;
        rest -= step;
    }
    return {quotient, static_cast<std::uint64_t>(rest)};
}

}  // namespace detail

/// encode_magnitude for the quotient of the finite float32 with bits `x` and the scale `s`.
MX_HD inline encoded encode_quotient(const element_params& f, const rounding_mode& mode,
                                     std::uint32_t x, const exact_scale& s, std::uint32_t draw) {
    const bool negative = (x & base::f32_sign_mask) != 0;
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (magnitude == 0) return {0, 0, false, negative};
    const base::decomposed d = base::decompose(magnitude);
    const std::uint32_t limit = f.limit(negative);
    const int exponent = d.exponent - s.exponent;  // y = significand / s.significand * 2^exponent
    const std::uint64_t aligned = std::uint64_t{d.significand} << (exact_scale_bits - 24);
    const int leading = exponent + 24 - exact_scale_bits - (aligned < s.significand ? 1 : 0);
    const int far = f.floating ? detail::far_exponent : detail::far_exponent + f.quantum;
    if (leading > far) return {limit, detail::far_beyond, true, negative};

    const int above = f.floating ? leading - f.emin : 0;
    const int binade = above > 0 ? above : 0;
    // y / 2^(quantum + binade) = dividend / divisor. From a shift of 31 on the quotient is below
    // 2^-38: a vanishing part of the quantum for every rounding, however far below.
    const int shift = exponent - f.quantum - binade;
    const std::uint64_t dividend = std::uint64_t{d.significand} << (shift > 0 ? shift : 0);
    const std::uint64_t divisor = s.significand << (shift >= 0 ? 0 : shift > -31 ? -shift : 31);
    const auto [significand, rest] = detail::divide(dividend, divisor);
    const std::uint32_t below =
        significand + (static_cast<std::uint32_t>(binade) << f.mantissa_bits);
    bool up = false;
    if (mode.how == rounding::stochastic) {
        const int k = mode.random_bits;
        const std::uint64_t r = draw >> (32 - k);
        up = detail::quotient_bits(rest, divisor, k) + r >= (std::uint64_t{1} << k);
    } else {
        // Other roundings need only whether the rest is zero, less than half, half, or more.
        const std::uint64_t quarters = rest == 0            ? 0
                                       : 2 * rest < divisor ? 1
                                       : 2 * rest > divisor ? 3
                                                            : 2;
        up = detail::rounds_up(f, mode, below, significand, quarters, 2, negative, draw);
    }
    const std::uint32_t unbounded = below + static_cast<std::uint32_t>(up);
    const bool beyond = (below > limit) | ((below == limit) & (rest != 0));
    return {unbounded < limit ? unbounded : limit, unbounded, beyond, negative};
}

}  // namespace mx::format
