// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace mx::base {

/// The decibels of a signal over its noise, from the ratio noise / signal of powers, or of their
/// roots. 0 has no sign: subtracting keeps -0 away, which multiplying by -10 does not.
inline double decibels_of_power(double ratio) { return 0.0 - 10.0 * std::log10(ratio); }
inline double decibels_of_root(double ratio) { return 0.0 - 20.0 * std::log10(ratio); }

}  // namespace mx::base
