// SPDX-License-Identifier: Apache-2.0
// The representable values of an element format in ascending order, continued as if the exponent
// range (or the integer width) were unbounded.
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/oracle/number.hpp"

namespace mx::oracle {

// The value of a code, derived from the independent facts of a table row (widths, bias, specials),
// not from the limits that the table derives.

enum class number_class : std::uint8_t { finite, infinite, nan };

struct decoded {
    number_class what = number_class::finite;
    bool negative = false;   ///< the sign bit, of zeros and NaNs too
    rational magnitude = 0;  ///< of finite values

    rational value() const { return negative ? rational(-magnitude) : magnitude; }
};

/// Number of bits of a code of `f`.
int code_bits(const format::element_format& f);

/// The value of `code`, 0 <= code < 2^code_bits(f).
decoded decode(const format::element_format& f, unsigned code);

/// The value of a scale code: E8M0 (2^(code-127), 255 is NaN) or the format's own number row.
decoded decode_scale(const format::scale_format& f, unsigned code);

/// One value, as an integer number of quanta (the smallest positive value of the format).
struct listed_value {
    std::int64_t quanta;
    bool even;  ///< its code is even; beyond the range, the code it would have
    int code;   ///< -1 beyond the format's range; for zero the positive zero
};

/// Distinct values in ascending order (one zero), continued on both sides up to four times the
/// largest value.
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

/// The list of `f`; with `full_range`, integers include -2^(bits-1).
value_list list_values(const format::element_format& f, bool full_range);

}  // namespace mx::oracle
