// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the nearest valid spelling of a name that does not exist.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx::base {

/// The candidate with the fewest single-character edits (insert, delete, replace, swap of
/// neighbours) from `name`, the first of equals; "" when none is near enough to be meant.
std::string_view nearest(std::string_view name, const std::vector<std::string_view>& candidates);

/// "; did you mean 'even'?" or "" when nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace mx::base
