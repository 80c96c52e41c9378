// SPDX-License-Identifier: Apache-2.0
// Formats and codes in words and exact numbers, derived from the format tables.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/report/record.hpp"

namespace mx::pages {

/// All decimal digits of x, which is a sum of powers of two: "0.001953125", "-6".
std::string exact_decimal(double x);

/// "0x1.8p+1".
std::string hexfloat(double x);

/// A code as stored: 0x7f, and 0b0111 with blanks between sign, exponent and mantissa.
std::string hex_code(int bits, std::uint32_t code);
std::string bit_fields(const format::element_format& f, std::uint32_t code);

/// Limits of an element format: name, bits, bias, emax, max, smallest normal and subnormal, codes.
report::record limits_of(const format::element_format& f);
/// The same members for a scale format.
report::record limits_of(const format::scale_format& f);

/// The meaning of a code: code, fields, value (decimal and hexadecimal), class.
report::record meaning_of(const format::element_format& f, std::uint32_t code);
report::record meaning_of(const format::scale_format& f, std::uint32_t code);

/// "1 sign, 2 exponent, 1 mantissa bit".
std::string layout_words(const format::element_format& f);

}  // namespace mx::pages
