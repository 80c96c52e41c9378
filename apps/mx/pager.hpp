// SPDX-License-Identifier: Apache-2.0
// Shows long help in a terminal through a pager.
#pragma once

#include <string>

namespace mx::app {

/// Prints `text` through the user's pager (settings.hpp) if standard output is a terminal and the
/// text does not fit, otherwise directly. Throws what print() throws.
void print_paged(const std::string& text);

}  // namespace mx::app
