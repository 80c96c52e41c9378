// SPDX-License-Identifier: Apache-2.0
// Conversion of one value to an element or scale format as a dialect does it.
#pragma once

#include <cstdint>

#include "libmx/format/element_formats.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/quantize/dialects.hpp"

namespace mx::quantize {

/// What a value became.
struct converted {
    int code;     ///< -1 where the result has no code (Inf kept in FP4, say)
    float value;  ///< the result as a number, with the sign of zero and of Inf; NaN as such
};

/// How values are converted.
struct conversion {
    const dialect* by;
    format::element_params element;
    format::rounding_mode mode;
    bool saturate = true;  ///< false: NaN (E4M3) or Inf (E5M2) beyond the largest value
    float value[256];      ///< decoded value of every code
};

/// The conversion to `f` (a row of the element formats, or the number of a scale format) under a
/// dialect; throws base::error (usage) when the dialect lacks the format or the rounding.
/// `full_range`: integers use the code -2^(n-1).
conversion conversion_of(const dialect& by, const format::element_format& f,
                         const format::rounding_mode& mode, bool saturate, bool full_range);

/// Converts the float32 bits `x`; `draw` is used by stochastic rounding only. In a block, `x` is
/// the element divided by the scale as the dialect divides.
converted convert(const conversion& c, std::uint32_t x, std::uint32_t draw);

/// The E8M0 code of the float32 bits `x` (of either sign, converted by magnitude). Toward zero:
/// the power of two below instead of above. saturate=false: beyond 2^127 gives 255. Throws
/// base::error (usage) when the dialect has no such conversion.
int convert_e8m0(const dialect& by, std::uint32_t x, bool toward_zero, bool saturate);

}  // namespace mx::quantize
