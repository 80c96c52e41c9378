// SPDX-License-Identifier: Apache-2.0
// Where a block maximum overflows the element format it was scaled for.
#pragma once

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

/// Block maxima whose mantissa m in [1, 2) satisfies from < m < to lie beyond the largest element
/// after scaling. Empty (from == to) when the rule never lets that happen, and for scales that are
/// no powers of two: what overflows there depends on the scale's rounding, not on the mantissa
/// alone.
struct clamp_zone {
    double from = 0;
    double to = 0;
    /// In the zone, maxima above this round beyond the largest element as well, so that the limit
    /// changes them; == to: none does.
    double clamps_from = 0;
    bool empty() const { return from >= to; }
    /// The share of block maxima that lie in it when their logarithms are uniform: log2(to / from),
    /// 0 when it is empty.
    double share() const;
    /// Likewise of maxima that the limit changes: log2(to / clamps_from).
    double clamped_share() const;
};

/// The zone of `r` (under stochastic rounding as if every draw rounded down), exact for every rule
/// and format (their thresholds lie on a 2^-14 grid), away from the ends of the scale's range.
clamp_zone clamp_zone_of(const recipe& r);

}  // namespace mx::codec
