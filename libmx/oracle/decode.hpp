// SPDX-License-Identifier: Apache-2.0
// What a code means, stated from the independent facts of a table row (widths, bias, specials);
// none of the limits the table derives is used.
#pragma once

#include <cstdint>

#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/oracle/number.hpp"

namespace mx::oracle {

enum class number_class : std::uint8_t { finite, infinite, nan };

struct decoded {
    number_class what = number_class::finite;
    bool negative = false;   ///< the sign bit, of zeros and NaNs too
    rational magnitude = 0;  ///< of finite values

    rational value() const { return negative ? rational(-magnitude) : magnitude; }
};

/// Number of bits of a code of `f`.
int code_bits(const format::element_format& f);

/// The meaning of `code`, 0 <= code < 2^code_bits(f).
decoded decode(const format::element_format& f, unsigned code);

/// The meaning of a scale code: E8M0 (2^(code-127), 255 is NaN) or the format's own number row.
decoded decode_scale(const format::scale_format& f, unsigned code);

}  // namespace mx::oracle
