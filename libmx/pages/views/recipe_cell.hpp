// SPDX-License-Identifier: Apache-2.0
// Recipes in the cells of tables.
#pragma once

#include <cstddef>
#include <string>

namespace mx::pages {

/// A recipe that is too long for `room` columns, with blanks behind colons and commas where its
/// lines are to end.
std::string breakable(const std::string& recipe, std::size_t room);

}  // namespace mx::pages
