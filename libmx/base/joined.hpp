// SPDX-License-Identifier: Apache-2.0
// Lists of words in a sentence.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mx::base {

/// The parts with `between` from one to the next. fmt::join says the same of any range, but takes
/// half a second to compile in each file that says it.
std::string joined(std::span<const std::string> parts, std::string_view between);
std::string joined(std::span<const std::string_view> parts, std::string_view between);

}  // namespace mx::base
