// SPDX-License-Identifier: Apache-2.0
// Formats and codes in words and exact numbers, derived from the format tables.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libmx/format/element_formats.hpp"
#include "libmx/format/scale_formats.hpp"
#include "libmx/report/declared.hpp"

namespace mx::pages {

/// All decimal digits of x, which is a sum of powers of two: "0.001953125", "-6".
std::string exact_decimal(double x);

/// "0x1.8p+1".
std::string hexfloat(double x);

/// A code as stored: 0x7f, and 0b0111 with blanks between sign, exponent and mantissa.
std::string hex_code(int bits, std::uint32_t code);
std::string bit_fields(const format::element_format& f, std::uint32_t code);

/// What an element or scale format holds.
struct format_limits {
    std::string_view kind, name;
    int bits;
    std::string layout;
    std::optional<int> bias;
    int emax;
    double max;
    std::optional<double> min_normal, min_subnormal;
    std::string max_code, specials;
    std::optional<int> finite_codes, codes;
    std::string_view safetensors, summary;
};
extern const std::array<report::declared<format_limits>, 18> limits_members;
/// As a record with limits_members.
report::record limits_of(const format::element_format& f);
report::record limits_of(const format::scale_format& f);

/// What a code of so many bits stands for.
struct code_meaning {
    int bits;
    std::uint32_t code;
    std::string fields, arithmetic;
    double value;
    std::string kind;
};
extern const std::array<report::declared<code_meaning>, 8> meaning_members;
/// As a record with meaning_members.
report::record meaning_of(const format::element_format& f, std::uint32_t code);
report::record meaning_of(const format::scale_format& f, std::uint32_t code);

/// "1 sign, 2 exponent, 1 mantissa bit".
std::string layout_text(const format::element_format& f);

}  // namespace mx::pages
