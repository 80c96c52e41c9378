// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/status.hpp"

#include <fmt/format.h>

#include <utility>

namespace mx::base {
namespace {

// Length of the well-formed UTF-8 sequence at `at`, 0 when it is not one (Unicode table 3-7).
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

std::string compose(const std::string& message, const error_place& place) {
    std::string line;
    if (!place.file.empty()) line += printable(place.file) + ": ";
    if (!place.tensor.empty()) line += fmt::format("tensor '{}': ", printable(place.tensor));
    if (place.offset) line += fmt::format("at byte {}: ", *place.offset);
    return line + printable(message);
}

}  // namespace

std::string printable(const std::string& text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const auto c = static_cast<unsigned char>(text[at]);
        const std::size_t length = utf8_length(text, at);
        // C1 controls (U+0080..U+009F) can drive a terminal as well as the C0 ones.
        const bool c1 = length == 2 && c == 0xc2 && static_cast<unsigned char>(text[at + 1]) < 0xa0;
        if (length == 0 || c < 0x20 || c == 0x7f || c1) {
            out += fmt::format("\\x{:02x}", c);
            if (c1) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + 1]));
            at += c1 ? 2 : 1;
        } else {
            out.append(text, at, length);
            at += length;
        }
    }
    return out;
}

error::error(error_kind kind, std::string message, error_place place)
    : std::runtime_error(compose(message, place)),
      kind_(kind),
      message_(std::move(message)),
      place_(std::move(place)) {}

}  // namespace mx::base
