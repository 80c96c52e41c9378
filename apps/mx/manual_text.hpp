// SPDX-License-Identifier: Apache-2.0
// What the generated pages have in common.
#pragma once

#include <string>
#include <string_view>

namespace mx::app {

inline constexpr std::string_view made_by =
    "<!-- Made by `mx help --write-manual docs` from the lists of the program; do not edit. -->\n";

/// Markdown that would be a tag, a table cell or an emphasis, as it stands.
inline std::string plain(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (std::string_view("*_<>|[]`").find(c) != std::string_view::npos) out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

}  // namespace mx::app
