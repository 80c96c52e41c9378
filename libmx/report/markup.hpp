// SPDX-License-Identifier: Apache-2.0
// Text inside HTML, SVG and CSV: the one place where it is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx::report {

/// `text` as character data or as a quoted attribute value of HTML and XML. & < > " ' become
/// references, and so do line breaks and tabs; invalid UTF-8 becomes U+FFFD; other characters that
/// act instead of being shown (base::control_length) are written as \xNN, as in tables.
std::string escaped(std::string_view text);

/// `text` as a field of RFC 4180: in quotes, inner ones doubled, where it has to be.
std::string csv_field(const std::string& text);
/// A line of such fields, its end included.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace mx::report
