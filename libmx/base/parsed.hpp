// SPDX-License-Identifier: Apache-2.0
// Numbers in texts.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace mx::base {

/// The number in `text` (std::from_chars; integers in the given `radix`); none if `text` as a whole
/// is not one number, or not one that T can represent.
template <typename T, typename... Radix>
std::optional<T> parsed(std::string_view text, Radix... radix) {
    T n{};
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, n, radix...);
    return failure == std::errc{} && stop == end ? std::optional(n) : std::nullopt;
}

}  // namespace mx::base
