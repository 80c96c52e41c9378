// SPDX-License-Identifier: Apache-2.0
// How structure-aware programs write a file in which up to two fields are wrong.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/fuzz/choices.hpp"

namespace mx::fuzz {

template <typename T>
std::string little_endian(T number) {
    std::string bytes(sizeof number, '\0');
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}

/// Every field of a file is written through one of these functions, which are numbered in the order
/// of their calls: at the numbers that the input chose, the field is wrong.
class author {
  public:
    explicit author(choices& from) : from_(from), wrong_{from.below(32), from.below(2048)} {}

    bool sound() const { return hits_ == 0; }

    std::uint64_t number(std::uint64_t right) {
        if (!hit()) return right;
        switch (from_.below(8)) {
            case 0:
                return right + 1;
            case 1:
                return right - 1;
            case 2:
                return 0;
            case 3:
                return 2 * right;
            case 4:
                return right ^ std::uint64_t{1} << from_.below(64);
            case 5:
                return ~std::uint64_t{0} >> from_.below(64);
            case 6:
                return right + (std::uint64_t{1} << from_.below(64));
            default:
                return from_.byte();
        }
    }
    template <typename T>
    std::string number_in(std::uint64_t right) {
        return little_endian(static_cast<T>(number(right)));
    }
    std::string text(std::string right) {
        if (!hit()) return right;
        constexpr std::string_view others[] = {
            "",      "../", "/",       "w0", "\xff", "\xe2\x80\xae", "{",  "\x1b",  "\"\\",
            "1e999", "-1",  "file://", ".",  "0",    "None",         "\n", "__0_0", "F32"};
        const std::string other(from_.of(others));
        const std::size_t at = static_cast<std::size_t>(from_.below(right.size() + 1));
        switch (from_.below(7)) {
            case 0:
                return other;
            case 1:
                return other + right;
            case 2:
                return right.substr(0, at);
            case 3:
                return right.substr(0, at) + '\0' + right.substr(at);
            case 4:
                return right + right;
            case 5:
                return right + std::string(static_cast<std::size_t>(from_.below(70000)), 'a');
            default:
                if (at < right.size()) right[at] = static_cast<char>(from_.byte());
                return right;
        }
    }
    /// How often a part of the file is there: once, or not, or more often.
    std::uint64_t times() {
        constexpr std::uint64_t others[] = {0, 2, 3, 40};
        return hit() ? from_.of(others) : 1;
    }
    std::string part(const std::string& right) {
        std::string all;
        for (std::uint64_t left = times(); left > 0; --left) all += right;
        return all;
    }
    /// The whole file: perhaps cut or longer.
    std::string file(std::string right) {
        if (hit()) right.resize(static_cast<std::size_t>(from_.below(right.size() + 9)));
        return right;
    }
    /// A choice between sound ways of writing.
    bool either() { return from_.once_in(2); }
    std::uint64_t below(std::uint64_t count) { return from_.below(count); }

  private:
    bool hit() {
        ++calls_;
        const bool now = calls_ == wrong_[0] || calls_ == wrong_[1];
        hits_ += now;
        return now;
    }

    choices& from_;
    std::array<std::uint64_t, 2> wrong_;
    std::uint64_t calls_ = 0, hits_ = 0;
};

/// A JSON string of any bytes.
inline std::string json_text(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

}  // namespace mx::fuzz
