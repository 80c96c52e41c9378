// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/status.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "libmx/base/secrets.hpp"

namespace mx::base {
namespace {

// Names and text of a file that a message quotes may be as long as the file.
constexpr std::size_t most_of_message = 1000;

std::string shortened(const std::string& text) { return printable(cut(text, most_of_message)); }

std::string compose(const std::string& message, const error_place& place) {
    std::string line;
    if (!place.file.empty()) line += shortened(place.file) + ": ";
    if (!place.tensor.empty()) line += fmt::format("tensor '{}': ", shortened(place.tensor));
    if (place.offset) line += fmt::format("at byte {}: ", *place.offset);
    return line + shortened(message);
}

}  // namespace

std::size_t utf8_length(const std::string& s, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
    const unsigned lead = byte(at);
    if (lead < 0x80) return 1;
    const std::size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || at + want > s.size()) return 0;
    for (std::size_t i = 1; i < want; ++i) {
        if ((byte(at + i) & 0xc0) != 0x80) return 0;
    }
    const unsigned second = byte(at + 1);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
        (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
        return 0;
    }
    return want;
}

char32_t code_point(const std::string& text, std::size_t at, std::size_t length) {
    char32_t c = static_cast<unsigned char>(text[at]);
    if (length > 1) c &= 0x7fu >> length;  // a leading byte has as many ones as there are bytes
    for (std::size_t i = 1; i < length; ++i) {
        c = c << 6 | (static_cast<unsigned>(text[at + i]) & 0x3f);
    }
    return c;
}

std::size_t control_length(const std::string& text, std::size_t at) {
    // Controls, separators of lines, what changes the direction of text, annotations, and
    // Unicode's Default_Ignorable_Code_Point.
    struct range {
        char32_t first, last;
    };
    static constexpr range hidden[] = {{0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
                                       {0x61c, 0x61c},     {0x115f, 0x1160},   {0x17b4, 0x17b5},
                                       {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
                                       {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfe00, 0xfe0f},
                                       {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
                                       {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return 0;
    const char32_t c = code_point(text, at, length);
    if (c < 0x7f) return c < 0x20 ? 1 : 0;
    const bool is_hidden =
        std::ranges::any_of(hidden, [&](const range& r) { return c >= r.first && c <= r.last; });
    return is_hidden ? length : 0;
}

std::string cut(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return text.substr(0, end) + "...";
}

std::string printable(const std::string& from) {
    const std::string text = without_secrets(from);
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8_length(text, at);
        const std::size_t harmful = length == 0 ? 1 : control_length(text, at);
        for (std::size_t i = 0; i < harmful; ++i) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
        }
        if (harmful == 0) out.append(text, at, length);
        at += harmful == 0 ? length : harmful;
    }
    return out;
}

error::error(error_kind kind, std::string message, error_place place)
    : std::runtime_error(compose(message, place)),
      kind_(kind),
      message_(std::move(message)),
      place_(std::move(place)) {}

void refuse(std::string message, error_place place) {
    throw error(error_kind::usage, std::move(message), std::move(place));
}

}  // namespace mx::base
