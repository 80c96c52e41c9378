// SPDX-License-Identifier: Apache-2.0
// The representable values of an element format in ascending order, and how they would go on if
// the exponent range (or the integer width) had no end.
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/format/element_formats.hpp"
#include "libmx/oracle/number.hpp"

namespace mx::oracle {

/// One value. Values are whole numbers of quanta (the smallest positive value of the format).
struct listed_value {
    std::int64_t quanta;
    bool even;  ///< its code is even; beyond the range, the code it would have
    int code;   ///< -1 beyond the format's range; for zero the positive zero
};

/// Ascending values, each once (zero without regard to sign), continued on both sides to four times
/// the largest value.
struct value_list {
    const format::element_format* element;
    int quantum_exponent;          ///< a quantum is 2^quantum_exponent
    std::int64_t greatest;         ///< largest finite value, in quanta
    std::int64_t least;            ///< most negative usable value, in quanta (0 without a sign)
    std::int64_t smallest_normal;  ///< 0 where the format has no subnormals
    int infinity_code;             ///< positive; -1 where there is none
    int nan_code;                  ///< the largest positive one; -1 where there is none
    std::vector<listed_value> values;
};

/// The list of `f`; `full_range` lets integers use -2^(bits-1).
value_list list_values(const format::element_format& f, bool full_range);

}  // namespace mx::oracle
