// SPDX-License-Identifier: Apache-2.0
// Maps values to positions along an axis, and chooses its ticks.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "libmx/report/figure.hpp"

namespace mx::report::svg {

/// The range of the values along an axis. Ignores values that are not finite.
class extent {
  public:
    void add(double x);
    bool empty() const { return low_ > high_; }
    double low() const { return low_; }
    double high() const { return high_; }
    bool has_positive() const { return positive_ <= high_; }
    /// The smallest positive value.
    double positive() const { return positive_; }
    /// Whether all values are integers, or all are halfway between two: layers, or bar edges around
    /// exponents. There are no ticks between integers then.
    bool whole() const { return whole_ || halves_; }
    /// Whether there are values and all are powers of two from 1 to 2^20, like block sizes.
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

/// An axis with its limits. low < high, both finite, and low > 0 if `log`.
struct scale {
    double low = 0, high = 1;
    bool log = false;
    std::vector<tick> ticks;  ///< ascending, within the limits

    /// 0 at `low`, 1 at `high`; values beyond the limits are mapped to the nearer end.
    double operator()(double x) const;
    /// -1 below the limits, 1 above them, 0 within.
    int beyond(double x) const;
};

/// Whether limits that are not set are extended to round values and towards zero.
enum class margin { round, round_from_zero, none };

/// The scale of `a` for values in `values`, with about `requested` ticks. A logarithmic axis
/// without positive values becomes linear.
scale scale_of(const axis& a, const extent& values, int requested, margin m = margin::round);

/// The smallest of 1, 2 and 5 times powers of ten that is not below `x` > 0.
double round_above(double x);

}  // namespace mx::report::svg
