// SPDX-License-Identifier: Apache-2.0
// The interval of block maxima that overflow the element format after scaling.
#pragma once

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

/// Block maxima with a mantissa m in [1, 2) such that from < m < to exceed the largest element
/// after scaling. Empty (from == to) if the rule prevents that, and for scales that are not powers
/// of two, for which the overflow depends on the rounding of the scale as well.
struct clamp_zone {
    double from = 0;
    double to = 0;
    /// In the zone, maxima above this value also round beyond the largest element, so that clamping
    /// changes them; == to: there are none.
    double clamps_from = 0;
    bool empty() const { return from >= to; }
    /// The share of block maxima in the zone if their logarithms are uniform: log2(to / from), 0 if
    /// it is empty.
    double share() const;
    /// The share of maxima that clamping changes: log2(to / clamps_from).
    double clamped_share() const;
};

/// The zone of `r` (under stochastic rounding as if every draw rounded down), exact for every rule
/// and format (their thresholds lie on a 2^-14 grid), away from the ends of the scale's range.
clamp_zone clamp_zone_of(const recipe& r);

}  // namespace mx::codec
