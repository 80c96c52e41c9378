// SPDX-License-Identifier: Apache-2.0
// The figures of an analysis as text: the tensors with the largest error, and a summary.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

struct analysis_view_options {
    bool all = false;       ///< every tensor, in file order
    std::size_t worst = 0;  ///< how many tensors otherwise; 0 chooses by the number of recipes
};

/// All tensors under one recipe, combined.
struct recipe_summary {
    std::shared_ptr<const analysis::named_recipe> under;
    double nrmse = 0, sqnr_db = 0;  ///< over all elements together; 0 without an error
    bool decomposed = false;
    bool exact = false;      ///< there is no error
    report::record members;  ///< of the list `summary` of mx.analysis/1
};

/// One per recipe, in the order of their first appearance.
std::vector<recipe_summary> summarize(const analysis::result_list& results);

/// The member `summary`.
void declare_summary(report::document_schema& to);

/// The sections of the human table and of Markdown after the verdict, of the recipes in `summary`.
std::vector<report::section> analysis_sections(const analysis::analysis& a,
                                               const std::vector<recipe_summary>& summary,
                                               const analysis_view_options& view);

}  // namespace mx::pages
