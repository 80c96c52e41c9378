// SPDX-License-Identifier: Apache-2.0
#include "libmx/base/status.hpp"

#include <fmt/format.h>

#include <utility>

namespace mx::base {
namespace {

// Text of a file that a message quotes may be as long as the file.
constexpr std::size_t most_of_message = 1000;

std::string shortened(const std::string& message) {
    if (message.size() <= most_of_message) return message;
    std::size_t end = most_of_message;
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
    return message.substr(0, end) + "...";
}

std::string compose(const std::string& message, const error_place& place) {
    std::string line;
    if (!place.file.empty()) line += printable(place.file) + ": ";
    if (!place.tensor.empty()) line += fmt::format("tensor '{}': ", printable(place.tensor));
    if (place.offset) line += fmt::format("at byte {}: ", *place.offset);
    return line + printable(shortened(message));
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

std::size_t control_length(const std::string& text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(at) < 0x20 || byte(at) == 0x7f) return 1;
    if (utf8_length(text, at) == 2) return byte(at) == 0xc2 && byte(at + 1) < 0xa0 ? 2 : 0;
    if (utf8_length(text, at) != 3 || byte(at) != 0xe2) return 0;
    const bool embedding = byte(at + 1) == 0x80 && byte(at + 2) >= 0xa8 && byte(at + 2) <= 0xae;
    const bool isolate = byte(at + 1) == 0x81 && byte(at + 2) >= 0xa6 && byte(at + 2) <= 0xa9;
    return embedding || isolate ? 3 : 0;
}

std::string printable(const std::string& text) {
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
