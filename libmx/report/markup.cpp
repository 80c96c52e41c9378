// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/markup.hpp"

#include <fmt/ranges.h>

#include <utility>

#include "libmx/base/joined.hpp"
#include "libmx/base/secrets.hpp"
#include "libmx/base/status.hpp"

namespace mx::report {
namespace {

// The character reference for `c`, or an empty text.
std::string_view reference(char c) {
    static constexpr std::pair<char, std::string_view> references[] = {
        {'&', "&amp;"},  {'<', "&lt;"},  {'>', "&gt;"},   {'"', "&quot;"},
        {'\'', "&#39;"}, {'\t', "&#9;"}, {'\n', "&#10;"}, {'\r', "&#13;"}};
    for (const auto& [of, text] : references) {
        if (of == c) return text;
    }
    return {};
}

}  // namespace

std::string escaped(std::string_view view) {
    const std::string text = base::without_secrets(std::string(view));
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view stands = reference(text[at]);
        const std::size_t length = base::utf8_length(text, at);
        if (!stands.empty()) {
            out += stands;
            ++at;
        } else if (length == 0) {
            out += "\xef\xbf\xbd";
            ++at;
        } else {
            const std::string character = text.substr(at, length);
            out += base::control_length(text, at) == 0 ? character : base::printable(character);
            at += length;
        }
    }
    return out;
}

std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + '"';
}

std::string csv_line(const std::vector<std::string>& fields) {
    return fmt::format("{}\r\n", base::joined(fields, ","));
}

}  // namespace mx::report
