// SPDX-License-Identifier: Apache-2.0
// Escapes text for HTML, SVG and CSV; all three are escaped here only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx::report {

/// `text` as character data or as a quoted attribute value of HTML and XML. & < > " ', line breaks
/// and tabs become character references; invalid UTF-8 becomes U+FFFD; other control characters
/// (base::control_length) are written as \xNN, as in tables.
std::string escaped(std::string_view view);

/// `text` as a field of RFC 4180: quoted if necessary, with inner quotes doubled.
std::string csv_field(const std::string& text);
/// A line of such fields with its line end.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace mx::report
