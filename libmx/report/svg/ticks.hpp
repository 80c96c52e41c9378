// SPDX-License-Identifier: Apache-2.0
// Round values: 1, 2 and 5 times powers of ten, and powers of two.
#pragma once

#include <vector>

#include "libmx/report/svg/scale.hpp"

namespace mx::report::svg {

/// The least 1, 2 or 5 times a power of ten that is not below `x` > 0.
double round_above(double x);
/// The largest that is not above `x` > 0.
double round_below(double x);
/// round_above that lets a step be a hair too small: 0.1 + 0.2 still steps by 0.3's neighbour.
double round_step(double x);

/// Multiples of `step` within the limits, all with the same decimals; in percent for a share.
std::vector<tick> linear_ticks(double low, double high, double step, bool share);
/// Decades where there are several, otherwise 1, 2 and 5 of each, otherwise multiples of a step.
std::vector<tick> log_ticks(double low, double high, int wanted, bool share);
/// Powers of two, written out.
std::vector<tick> binary_ticks(double low, double high);

}  // namespace mx::report::svg
