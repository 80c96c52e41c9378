// SPDX-License-Identifier: Apache-2.0
// Which conversions of single values a dialect has, and their parameters.
#pragma once

#include "libmx/codec/convert_element.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/encode.hpp"

namespace mx::codec {

/// The conversion to `f` (a row of the element formats, or the number of a scale format) under a
/// dialect; throws base::error (usage) when the dialect lacks the format or the rounding.
/// `full_range`: integers use the code -2^(n-1).
conversion conversion_of(const dialect& by, const format::element_format& f,
                         const format::rounding_mode& mode, bool saturate, bool full_range);

/// Throws base::error (usage) when the dialect has no conversion to E8M0.
void require_e8m0(const dialect& by);

}  // namespace mx::codec
