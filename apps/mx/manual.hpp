// SPDX-License-Identifier: Apache-2.0
// docs/reference, docs/man and docs/design/dialects.md, made from the lists.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace mx::app {

/// Path below the docs folder and text of every generated page.
std::vector<std::pair<std::string, std::string>> manual_pages();

/// Writes the pages below `directory`, making folders as needed. Throws base::error (output).
void write_manual(const std::string& directory);

}  // namespace mx::app
