// SPDX-License-Identifier: Apache-2.0
// What float32 sums of the same terms can give, in any order (docs/design/tolerances.md).
#pragma once

#include <span>

namespace mx::gemm {

/// A class of sums. Terms are rounded to float32 where they do not fit it, and added in float32 in
/// any order and association, with or without fused multiply-adds. Subnormals are kept.
struct sum_class {
    /// Each operation gives either float32 neighbour of its exact result; otherwise the nearest.
    bool faithful = false;
    /// Further roundings of a term, or of the sums that contain it, by multiplications with scales.
    int scalings = 0;
};

/// The finite results are those from `low` to `high`.
struct sum_interval {
    double low = 0, high = 0;
    double exact = 0;        ///< the exact sum, rounded to float64
    bool nan = false;        ///< the result is NaN, and nothing else
    bool unbounded = false;  ///< some order can overflow, or there are too many terms: all conforms

    /// Half of the width; 0 if all orders give the same.
    double radius() const { return (high - low) / 2; }
    /// Whether `x` can be a result. The sign of zero does not matter.
    bool contains(double x) const;
};

/// The interval that contains every result of `how`. Terms are exact to a relative 2^-52, and those
/// of sums without `scalings` exact. With Inf among them the result is Inf or NaN after IEEE 754.
sum_interval interval_of_sum(std::span<const double> terms, const sum_class& how);

}  // namespace mx::gemm
