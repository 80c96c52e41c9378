// SPDX-License-Identifier: Apache-2.0
// A comparison as text: the ranking, bests, matrices, and a verdict.
#pragma once

#include <cstddef>
#include <vector>

#include "libmx/report/document.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::pages {

struct compare_view_options {
    std::size_t top = 20;  ///< rows of the ranking that are shown
    bool layers = false;   ///< layer by layer, also where there are several series
};

/// Heading of the section that states the ranking in words.
inline constexpr const char* ranking_heading = "What the ranking says";

/// The columns of a ranking: with intervals over seeds, the parts of the error, and regret.
std::vector<report::column> ranking_columns(bool seeds, bool parts, bool regret);
inline constexpr const char* regret_note =
    "Regret: share of the squared error that the best scale of each block would save, %.";

/// The sections of the human table and of Markdown.
std::vector<report::section> compare_sections(const compare::sweep_plan& plan,
                                              const compare::comparison& c,
                                              const std::vector<engine::skipped_tensor>& skipped,
                                              const compare_view_options& view);

}  // namespace mx::pages
