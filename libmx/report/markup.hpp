// SPDX-License-Identifier: Apache-2.0
// Text inside HTML and SVG: the one place where it is escaped.
#pragma once

#include <string>
#include <string_view>

namespace mx::report {

/// `text` as character data or as a quoted attribute value of HTML and XML. & < > " ' become
/// references, and so do line breaks and tabs; invalid UTF-8 becomes U+FFFD; other characters that
/// act instead of being shown (base::control_length) are written as \xNN, as in tables.
std::string escaped(std::string_view text);

}  // namespace mx::report
