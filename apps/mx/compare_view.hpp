// SPDX-License-Identifier: Apache-2.0
// A comparison as people read it: the ranking, bests, matrices, and a verdict.
#pragma once

#include <cstddef>
#include <vector>

#include "libmx/pipeline/compare/comparison.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

struct compare_view_options {
    std::size_t top = 20;  ///< rows of the ranking that are shown
    bool layers = false;   ///< layer by layer, also where there are several series
};

/// The sections of the human table and of Markdown.
std::vector<report::section> compare_sections(const pipeline::compare::sweep_plan& plan,
                                              const pipeline::compare::comparison& c,
                                              const std::vector<pipeline::skipped_tensor>& skipped,
                                              const compare_view_options& view);

}  // namespace mx::app
