// SPDX-License-Identifier: Apache-2.0
// docs/design/dialects.md, made from the lists of dialects, columns and disagreements.
#pragma once

#include <string>

namespace mx::app {

/// The page; its disagreements are answered by running the code.
std::string dialect_page();

}  // namespace mx::app
