// SPDX-License-Identifier: Apache-2.0
// The analysis as people read it: the tensors that lose most, a summary, and a verdict.
#pragma once

#include <cstddef>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

struct view_options {
    bool all = false;       ///< every tensor, in file order
    std::size_t worst = 0;  ///< how many tensors otherwise; 0 chooses by the number of recipes
};

/// The sections of the human table and of Markdown.
std::vector<report::section> analysis_sections(const analysis::analysis& a,
                                               const std::vector<report::record>& summary,
                                               const view_options& view);

}  // namespace mx::pages
