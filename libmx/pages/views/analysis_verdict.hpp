// SPDX-License-Identifier: Apache-2.0
// What the figures say, in words: which scale rule wins, who clamps, what to try.
#pragma once

#include <string>
#include <vector>

#include "libmx/pages/views/analysis_view.hpp"

namespace mx::pages {

/// Paragraphs, list items ("- ...") and a closing definition; empty when there is nothing to say.
std::vector<std::string> verdict_of(const std::vector<analysis::result>& results,
                                    const std::vector<recipe_summary>& summary);

}  // namespace mx::pages
