// SPDX-License-Identifier: Apache-2.0
// Values as text, shared by the terminal table and Markdown.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "libmx/report/document.hpp"

namespace mx::report {

/// The text of member `c.field` of `r`: "-" for null, "" if it is missing.
std::string cell_text(const record& r, const column& c);

/// Whether the column is aligned to the right.
bool is_numeric(cell kind);

/// "64x128", "-" for a scalar.
std::string extents_text(const list& extents);

/// 1234567 as "1,234,567".
std::string grouped(std::int64_t n);

/// "1 tensor", "1,234 tensors".
template <std::integral I>
std::string plural(I n, std::string_view noun) {
    return std::string(grouped(static_cast<std::int64_t>(n)))
        .append(" ")
        .append(noun)
        .append(n == 1 ? "" : "s");
}

/// `digits` decimals; what rounds to zero has no sign.
std::string fixed_text(double x, int digits);

/// A share (0..1) in percent with two decimals: "0" and "100" only when exact, otherwise "<0.01"
/// and ">99.99" at the ends.
std::string percent_text(double share);

/// `digits` significant digits; exponents below 1e-4 and from 10^digits on.
std::string significant_text(double x, int digits);

}  // namespace mx::report
