// SPDX-License-Identifier: Apache-2.0
// Numbers in texts.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace mx::base {

/// The number that all of `text` spells (std::from_chars; integers in the `radix` given); none when
/// it spells no number, more than one, or one that a T does not hold.
template <typename T, typename... Radix>
std::optional<T> parsed(std::string_view text, Radix... radix) {
    T n{};
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, n, radix...);
    return failure == std::errc{} && stop == end ? std::optional(n) : std::nullopt;
}

}  // namespace mx::base
