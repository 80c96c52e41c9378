// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/stored_path.hpp"

#include <algorithm>
#include <string>

namespace mx::base {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// %XX as the byte that it stands for.
std::string percent_decoded(std::string_view text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool coded = text[at] == '%' && at + 2 < text.size();
        const int high = coded ? hex_digit(text[at + 1]) : -1;
        const int low = coded ? hex_digit(text[at + 2]) : -1;
        if (high >= 0 && low >= 0) at += 2;
        out += high >= 0 && low >= 0 ? static_cast<char>(high << 4 | low) : text[at];
    }
    return out;
}

}  // namespace

bool stays_inside(std::string_view path) {
    if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos ||
        path.find("://") != std::string_view::npos) {
        return false;
    }
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find('/', at), path.size());
        if (path.substr(at, end - at) == "..") return false;
        at = end + 1;
    }
    const std::string decoded = percent_decoded(path);
    return decoded == path || stays_inside(decoded);
}

}  // namespace mx::base
