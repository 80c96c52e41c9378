// SPDX-License-Identifier: Apache-2.0
// Rounding a float32 to an element format, in integers only: the one place that rounds and packs.
//
// The input is x = significand * 2^exponent exactly; dividing by a power-of-two scale only changes
// the exponent, so y = x / S is never formed as a float. The significand is shifted down to the
// element's quantum at y, the bits shifted out decide the rounding, and the carry of an increment
// walks into the exponent field because magnitude codes are consecutive integers.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/format/element_params.hpp"
#include "libmx/format/roundings.hpp"

namespace mx::format {

/// How elements are rounded.
struct rounding_mode {
    rounding how = rounding::rtne;
    tie_rule ties = tie_rule::up;
    int random_bits = 32;  ///< stochastic: width k of the random number, 1..32
    /// stochastic: the fraction is rounded to k bits (ties to even) before r is added, in place of
    /// being cut to k bits (gfloat `Stochastic`).
    bool round_fraction = false;
    friend bool operator==(const rounding_mode&, const rounding_mode&) = default;
};

/// A rounded element. Magnitude codes are without sign; `unbounded` may exceed the format (there it
/// counts on as if the exponent field were wider), which is how saturation is told from rounding.
struct encoded {
    std::uint32_t magnitude;  ///< saturated magnitude code
    std::uint32_t unbounded;  ///< magnitude code before saturation (capped at 2^16)
    bool beyond_max;          ///< |y| > largest finite value of its sign, before rounding
    bool negative;
};

namespace detail {

/// Magnitudes this far above every format are the same overflow.
inline constexpr std::uint32_t far_beyond = 1u << 16;
inline constexpr int far_exponent = 16;

/// Whether the magnitude rounds up by one code, from the code below and what was cut off: `rest`
/// out of 2^shift. Nearest roundings compare twice the rest with 2^shift, and a tie adds one if it
/// goes up; no branch depends on data.
MX_HD inline bool rounds_up(const element_params& f, const rounding_mode& mode,
                            std::uint32_t code_below, std::uint32_t significand_below,
                            std::uint64_t rest, int shift, bool negative, std::uint32_t draw) {
    const std::uint64_t one = std::uint64_t{1} << shift;
    switch (mode.how) {
        case rounding::zero:
            return false;
        case rounding::up:
            return !negative && rest != 0;
        case rounding::down:
            return negative && rest != 0;
        case rounding::away:
            return 2 * rest >= one;
        case rounding::ties_to_zero:
            return 2 * rest > one;
        case rounding::rtne: {
            // Without mantissa bits the significand is 1 at every normal code: tie_rule::up.
            const bool by_significand = f.mantissa_bits == 0 && mode.ties == tie_rule::up;
            const std::uint32_t odd = (by_significand ? significand_below : code_below) & 1u;
            return 2 * rest + odd > one;
        }
        case rounding::stochastic: {
            // floor(delta * 2^k) + r >= 2^k with delta = rest / 2^shift, r the top k bits.
            const int k = mode.random_bits;
            const std::uint64_t r = draw >> (32 - k);
            std::uint64_t fraction = (rest << k) >> shift;
            if (mode.round_fraction) {
                const std::uint64_t cut = (rest << k) & (one - 1);
                fraction += 2 * cut + (fraction & 1u) > one ? 1u : 0u;
            }
            return fraction + r >= (std::uint64_t{1} << k);
        }
    }
    return false;
}

}  // namespace detail

/// Rounds the finite float32 with bits `x`, divided by 2^scale_exponent, to the format. `draw` is
/// used by stochastic rounding only. A zero gives magnitude 0; NaN and Inf are the caller's.
MX_HD inline encoded encode_magnitude(const element_params& f, const rounding_mode& mode,
                                      std::uint32_t x, int scale_exponent, std::uint32_t draw) {
    const bool negative = (x & base::f32_sign_mask) != 0;
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (magnitude == 0) return {0, 0, false, negative};
    const base::decomposed d = base::decompose(magnitude);
    const int exponent = d.exponent - scale_exponent;  // y = significand * 2^exponent
    const int leading = exponent + 23;                 // floor(log2 |y|)
    const std::uint32_t limit = f.limit(negative);
    // Every format ends below; further down the shift is not negative for fixed point, too.
    if (leading > f.far_exponent) return {limit, detail::far_beyond, true, negative};

    const int above = f.floating ? leading - f.emin : 0;
    const int binade = above > 0 ? above : 0;
    // Not negative, since mantissas have at most 23 bits; from 62 on nothing is kept and the
    // rest, below 2^24, is a vanishing part of the quantum for every rounding.
    const int wanted = f.quantum + binade - exponent;
    const int shift = wanted < 62 ? wanted : 62;
    const std::uint64_t whole = d.significand;
    const auto significand = static_cast<std::uint32_t>(whole >> shift);
    const std::uint64_t rest = whole & ((std::uint64_t{1} << shift) - 1);
    const std::uint32_t below =
        significand + (static_cast<std::uint32_t>(binade) << f.mantissa_bits);
    const bool up = detail::rounds_up(f, mode, below, significand, rest, shift, negative, draw);
    const std::uint32_t unbounded = below + static_cast<std::uint32_t>(up);
    const bool beyond = (below > limit) | ((below == limit) & (rest != 0));
    return {unbounded < limit ? unbounded : limit, unbounded, beyond, negative};
}

/// The code of a rounded magnitude: sign bit for floating formats (zero keeps its sign), two's
/// complement for integers (no negative zero), magnitude alone for unsigned formats.
MX_HD inline std::uint32_t with_sign(const element_params& f, std::uint32_t magnitude,
                                     bool negative) {
    const std::uint32_t sign =
        static_cast<std::uint32_t>(negative) & static_cast<std::uint32_t>(f.has_sign);
    if (f.floating) return magnitude | sign << (f.bits - 1);
    return ((magnitude ^ (0u - sign)) + sign) & ((1u << f.bits) - 1u);
}

}  // namespace mx::format
