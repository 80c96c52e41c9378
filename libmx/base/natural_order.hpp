// SPDX-License-Identifier: Apache-2.0
// Names in the order of the numbers in them: step200 before step1000.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx::base {

/// "step12.npy" as "step", "12", ".npy": texts at even places, numbers at odd ones.
std::vector<std::string> runs_of(std::string_view name);

/// Compares texts of digits as the numbers they are, of any length.
bool less_number(std::string_view a, std::string_view b);

/// Part by part, numbers as numbers; names that are equal in this order are compared as texts.
bool naturally_less(std::string_view a, std::string_view b);

}  // namespace mx::base
