// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/html/base64.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace mx::report::html {
namespace {

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

unsigned digit_of(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

}  // namespace

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
    if (std::all_of(values.begin(), values.end(), same) && !values.empty()) {
        values = values.first(1);
    }
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
