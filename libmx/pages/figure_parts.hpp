// SPDX-License-Identifier: Apache-2.0
// Parts of the figures of a review that need its results.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/pages/histogram_sums.hpp"
#include "libmx/pages/review_data.hpp"
#include "libmx/pages/views/figures.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// The cells of a figure with at most `most` cells.
std::vector<std::size_t> shown_cells(const review_data& e, std::size_t most);

/// "The first 9 of 20 recipes."; empty when all are shown.
std::string shown_text(const review_data& e, std::size_t most);

/// The classes with figures of their own besides all tensors (""): norms, whose errors differ.
std::vector<std::string> plotted_roles(const review_data& e);

/// "all tensors", or "norm tensors".
std::string tensors_of(const std::string& role);

/// A tensor's elements under the run that counts the most.
double elements_of(const review_data& e, std::size_t tensor);

/// Panels of block maxima by mantissa, and one such panel, with the clamp zone of `r` shaded.
report::bar_chart mantissa_chart();
report::bar_chart::series mantissa_panel(const codec::recipe& r, const std::string& name,
                                         const mantissas& bins);

}  // namespace mx::pages
