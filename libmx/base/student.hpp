// SPDX-License-Identifier: Apache-2.0
// Means of a few runs with their intervals.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace mx::base {

/// A mean, and half the width of its 95 % interval if there are several runs.
struct estimate {
    double mean = 0;
    std::optional<double> interval;
};

/// The t for which a Student variable of `degrees` >= 1 degrees of freedom lies in (-t, t) with
/// probability 0.95, from the finite series of its distribution (Abramowitz and Stegun 26.7.3 and
/// 26.7.4), to within 1e-12 relatively.
double student_t95(std::size_t degrees);

/// The probability that |T| of `degrees` >= 1 degrees of freedom is at least |t|, by the same
/// series.
double student_p(double t, std::size_t degrees);

/// The mean of `values` (at least one) with the interval t s / sqrt(n), s the sample's standard
/// deviation; no interval for a single value.
estimate estimate_of(std::span<const double> values);

}  // namespace mx::base
