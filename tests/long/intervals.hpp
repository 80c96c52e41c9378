// SPDX-License-Identifier: Apache-2.0
// A conversion as a list of intervals: the float32 values at which the code changes, computed from
// the exact values and midpoints of the format without a conversion. The code of every float32
// follows from them, so all 2^32 can be checked quickly.
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/oracle/rounding.hpp"

namespace mx::oracle {

/// From these float32 bits on (sign included, magnitudes ascending) the code is this one.
struct code_interval {
    std::uint32_t first;
    unsigned code;
};

/// The intervals of the finite float32 values of one sign, the first one at zero, under a rounding
/// that is not stochastic. Beyond the largest value the code remains that of the largest or,
/// without `saturate` if the format has a code for it, becomes NaN or Inf. Formats without a sign
/// convert magnitudes.
std::vector<code_interval> intervals(const value_list& list, const rounding_choice& choice,
                                     bool negative, bool saturate);

}  // namespace mx::oracle
