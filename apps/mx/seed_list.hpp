// SPDX-License-Identifier: Apache-2.0
// --seeds of training commands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mx::app {

/// The integer in the value of `option`. Throws base::error (usage).
std::uint64_t whole_number(const std::string& option, std::string_view text);

/// The seeds in "1..32" or "1,5,9..12". Throws base::error (usage).
std::vector<std::uint64_t> seeds_of(const std::string& text);

}  // namespace mx::app
