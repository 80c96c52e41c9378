// SPDX-License-Identifier: Apache-2.0
// A comparison of recipes: the ranking, the best by role and by layer, and where rules differ.
#pragma once

#include <cstddef>
#include <vector>

#include "libmx/pages/views/result_set.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

struct compare_view_options {
    std::size_t top = 20;  ///< rows of the ranking that are shown
    bool layers = false;   ///< layer by layer, also where there are several series
};

/// Heading of the verdict of a comparison.
inline constexpr const char* ranking_heading = "What the ranking says";

/// Whether results are those of mx compare.
bool is_comparison(const result_set& of);

/// What follows the verdict of mx compare; empty for other results. First the ranking.
std::vector<report::section> compare_view(const result_set& of,
                                          const compare_view_options& view = {});

}  // namespace mx::pages
