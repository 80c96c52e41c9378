// SPDX-License-Identifier: Apache-2.0
// Long help on a terminal, shown page by page.
#pragma once

#include <string>

namespace mx::app {

/// Prints `text` through the user's pager (settings.hpp) where standard output is a terminal that
/// it does not fit on, otherwise as it is. Throws what print() throws.
void print_paged(const std::string& text);

}  // namespace mx::app
