// SPDX-License-Identifier: Apache-2.0
// Rounding by comparison with the two neighbours in the list of representable values.
#pragma once

#include <cstdint>

#include "libmx/format/roundings.hpp"
#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {

/// The rounding mode, and the random draw of stochastic rounding.
struct rounding_choice {
    format::rounding how = format::rounding::rtne;
    format::tie_rule ties = format::tie_rule::up;  ///< rtne in formats without mantissa bits
    int random_bits = 32;                          ///< k: r is the top k bits of the draw
    bool round_fraction = false;                   ///< stochastic: delta to k bits first, ties even
};

struct rounded {
    unsigned code;        ///< of q
    std::int64_t quanta;  ///< q in quanta of the format
    bool beyond;          ///< |y| > M of its sign
    bool clamped;         ///< |r| > M: rounding with unbounded range went beyond
    bool top;             ///< q is M of its sign
    bool subnormal;       ///< 0 < |q| < smallest normal
};

/// Rounds y = numerator/denominator (denominator > 0) to the listed format, saturating. `negative`
/// is the sign of y; a zero result keeps it if the format has a sign bit.
rounded round_to(const value_list& list, const integer& numerator, const integer& denominator,
                 bool negative, const rounding_choice& choice, std::uint32_t draw);

// Conversion of one float32 without a shared scale.

/// The code of any float32 `x`. Beyond the largest value, Inf included: the largest value of the
/// same sign; without `saturate`, values that round beyond it become NaN (specials fn) or Inf
/// (ieee). NaN gives the positive NaN with all bits set; in formats without NaN, +max; in integers,
/// 0. A format without a sign converts |x|, or clamps negative numbers to 0 if its row says so.
unsigned cast(const value_list& list, float x, const rounding_choice& choice, std::uint32_t draw,
              bool saturate);

/// The E8M0 code of |x|: the smallest power of two not below it or, with `toward_zero`, the largest
/// not above it, clamped to [2^-127, 2^127]; Inf gives 254 and NaN 255.
unsigned cast_to_e8m0(float x, bool toward_zero);

}  // namespace mx::oracle
