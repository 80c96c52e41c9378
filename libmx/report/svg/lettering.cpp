// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/lettering.hpp"

#include <algorithm>

#include "libmx/report/text.hpp"

namespace mx::report::svg {
namespace {

// In ems. A code point counts with its first byte; those beyond the general punctuation and
// mathematical signs are as wide as ideographs.
double advance(char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0xe3) return 1;
    if (byte >= 0xc0) return 0.62;
    if (byte >= 0x80) return 0;
    if (std::string_view("ijl.,:;'|!()[]`").find(c) != std::string_view::npos) return 0.34;
    if (std::string_view(" ftr/\\-\"").find(c) != std::string_view::npos) return 0.4;
    if (std::string_view("mwMW@%").find(c) != std::string_view::npos) return 0.92;
    if (c >= 'A' && c <= 'Z') return 0.68;
    return 0.6;
}

bool breaks_behind(char c) { return std::string_view(" :/,_+-").find(c) != std::string_view::npos; }

}  // namespace

double width_of(std::string_view text, double size) {
    double ems = 0;
    for (const char c : text) ems += advance(c);
    return ems * size;
}

double widest(const std::vector<std::string>& texts, double size) {
    double most = 0;
    for (const std::string& text : texts) most = std::max(most, width_of(text, size));
    return most;
}

std::string fitted(const std::string& text, double width, double size) {
    if (width_of(text, size) <= width) return text;
    // No character is narrower than a third of an em, and names from files may be megabytes.
    const auto most = static_cast<std::size_t>(3 * std::max(width, size) / size);
    std::size_t columns = std::min(columns_of(text), most);
    std::string out = shortened(text, columns);
    while (columns > 5 && width_of(out, size) > width) out = shortened(text, --columns);
    return out;
}

std::vector<std::string> broken(const std::string& text, double width, double size) {
    std::vector<std::string> lines;
    std::string line;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && !breaks_behind(text[end])) ++end;
        if (end < text.size()) ++end;
        const std::string piece = text.substr(at, end - at);
        if (!line.empty() && width_of(line + piece, size) > width) {
            lines.push_back(line);
            line.clear();
        }
        line += piece;
        at = end;
    }
    if (!line.empty() || lines.empty()) lines.push_back(line);
    return lines;
}

}  // namespace mx::report::svg
