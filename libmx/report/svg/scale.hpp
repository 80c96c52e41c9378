// SPDX-License-Identifier: Apache-2.0
// From values to places along an axis, and where its ticks are.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "libmx/report/figure.hpp"

namespace mx::report::svg {

/// What the values along an axis span. Values that are not finite are not values.
class extent {
  public:
    void add(double x);
    bool empty() const { return low_ > high_; }
    double low() const { return low_; }
    double high() const { return high_; }
    bool has_positive() const { return positive_ <= high_; }
    /// The least positive value.
    double positive() const { return positive_; }
    /// Whether all values are whole numbers, or all lie half way between two: layers, and edges of
    /// bars around exponents. There is no tick between whole numbers then.
    bool whole() const { return whole_ || halves_; }
    /// Whether there are values and all are powers of two from 1 to 2^20: block sizes.
    bool powers_of_two() const { return !empty() && powers_of_two_; }

  private:
    double low_ = std::numeric_limits<double>::infinity();
    double high_ = -std::numeric_limits<double>::infinity();
    double positive_ = std::numeric_limits<double>::infinity();
    bool whole_ = true;
    bool halves_ = true;
    bool powers_of_two_ = true;
};

struct tick {
    double value;
    std::string text;
};

/// An axis with its limits decided. low < high, both finite, and low > 0 when `log`.
struct scale {
    double low = 0, high = 1;
    bool log = false;
    std::vector<tick> ticks;  ///< ascending, within the limits

    /// 0 at `low`, 1 at `high`; values beyond are put at the nearer end.
    double operator()(double x) const;
    /// -1 below the limits, 1 above them, 0 within.
    int beyond(double x) const;
};

/// Whether limits that are not set are moved to round values and towards zero.
enum class margin { round, round_from_zero, none };

/// The scale of `a` for values spanning `values`, with about `wanted` ticks. A logarithmic axis
/// without positive values is linear.
scale scale_of(const axis& a, const extent& values, int wanted, margin m = margin::round);

/// The least of 1, 2 and 5 times powers of ten that is not below `x` > 0.
double round_above(double x);

}  // namespace mx::report::svg
