// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/html/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "libmx/base/status.hpp"
#include "libmx/report/markup.hpp"

namespace mx::report::html {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

unsigned digit_of(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

}  // namespace

std::string shown(const std::string& text) { return escaped(base::printable(text)); }

std::string shown_name(const std::string& text) {
    std::string out;
    for (const char c : shown(text)) {
        out += c;
        if (std::string_view("./:,=_").find(c) != std::string_view::npos) out += "<wbr>";
    }
    return out;
}

std::string shown_words(const std::string& text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const std::string plain = shown(text);
    std::string out;
    for (std::size_t i = 0; i < plain.size(); ++i) {
        out += plain[i];
        if (plain[i] == ',' && i + 1 < plain.size() && letter(plain[i + 1])) out += "<wbr>";
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
    // JSON does not decode HTML entities, but \u003c is part of its string syntax.
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

std::string base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
        std::uint32_t group = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
        }
        for (std::size_t i = 0; i < 4; ++i) {
            out += i <= count ? alphabet[group >> (18 - 6 * i) & 63u] : '=';
        }
    }
    return out;
}

std::string base64_floats(std::span<const float> values) {
    const auto same = [&](float x) {
        return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(values.front());
    };
    if (std::ranges::all_of(values, same) && !values.empty()) values = values.first(1);
    std::string bytes;
    bytes.reserve(4 * values.size());
    for (const float x : values) {
        const auto bits = std::bit_cast<std::uint32_t>(x);
        for (unsigned shift = 0; shift < 32; shift += 8) {
            bytes += static_cast<char>(bits >> shift & 0xffu);
        }
    }
    return base64(bytes);
}

std::string policy_hash(std::string_view hexadecimal) {
    std::string bytes;
    for (std::size_t at = 0; at + 1 < hexadecimal.size(); at += 2) {
        bytes += static_cast<char>(digit_of(hexadecimal[at]) << 4 | digit_of(hexadecimal[at + 1]));
    }
    return "sha256-" + base64(bytes);
}

}  // namespace mx::report::html
