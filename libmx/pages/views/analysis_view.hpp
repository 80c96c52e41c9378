// SPDX-License-Identifier: Apache-2.0
// The figures of an analysis as text: the tensors with the largest error, and a summary.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/pages/views/result_set.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

struct analysis_view_options {
    bool all = false;       ///< every tensor, in file order
    std::size_t worst = 0;  ///< how many tensors otherwise; 0 chooses by the number of recipes
    std::vector<std::string> hidden = {};  ///< recipes that the tables leave out
};

/// The sections of the human table and of Markdown after the verdict of mx analyze.
std::vector<report::section> analysis_view(const result_set& of, const analysis_view_options& view);

}  // namespace mx::pages
