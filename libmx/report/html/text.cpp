// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/html/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "libmx/base/status.hpp"
#include "libmx/report/markup.hpp"

namespace mx::report::html {

std::string shown(const std::string& text) { return escaped(base::printable(text)); }

std::string shown_name(const std::string& text) {
    std::string out;
    for (const char c : shown(text)) {
        out += c;
        if (std::string_view("./:,=_").find(c) != std::string_view::npos) out += "<wbr>";
    }
    return out;
}

std::string shown_title(const std::string& title) {
    std::string out;
    for (std::size_t at = 0; at <= title.size();) {
        const std::size_t end = std::min(title.find('\n', at), title.size());
        const std::string line = shown(title.substr(at, end - at));
        if (!out.empty() && !line.empty()) out += "<br>";
        out += line;
        at = end + 1;
    }
    return out;
}

std::string quoted(const std::string& text) {
    // JSON is not HTML: an entity would stay as it is, but \u003c is a character of the string.
    std::string out;
    for (const char c : nlohmann::json(base::printable(text)).dump()) {
        if (std::string_view("<>&").find(c) != std::string_view::npos) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            out += c;
        }
    }
    return out;
}

std::string anchors::claim(std::string_view wish) {
    constexpr std::size_t longest = 60;
    std::string id;
    for (const char c : wish.substr(0, longest)) {
        const bool upper = c >= 'A' && c <= 'Z';
        if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            id += upper ? static_cast<char>(c - 'A' + 'a') : c;
        } else if (!id.empty() && id.back() != '-') {
            id += '-';
        }
    }
    if (!id.empty() && id.back() == '-') id.pop_back();
    if (id.empty()) id = "part";
    std::string free = id;
    for (int n = 2; !taken_.insert(free).second; ++n) free = fmt::format("{}-{}", id, n);
    return free;
}

}  // namespace mx::report::html
