// SPDX-License-Identifier: Apache-2.0
// Lists of words in a sentence.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mx::base {

/// The parts with `between` between neighbours. fmt::join does the same for any range, but takes
/// half a second to compile in each file that uses it.
std::string joined(std::span<const std::string> parts, std::string_view between);
std::string joined(std::span<const std::string_view> parts, std::string_view between);

/// "a, b and c".
std::string listed(std::span<const std::string> parts);

}  // namespace mx::base
