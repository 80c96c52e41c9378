// SPDX-License-Identifier: Apache-2.0
// What the figures of a review have in common.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/pages/evidence.hpp"
#include "libmx/pages/histogram_sums.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// Recipes that a figure holds; of more, the first. Lines get confused earlier than columns.
inline constexpr std::size_t most_lines = 9;
inline constexpr std::size_t most_figure_recipes = 16;

/// The cells of a figure that holds at most `most`.
std::vector<std::size_t> shown_cells(const evidence& e, std::size_t most);

/// "The first 9 of 20 recipes."; empty when all are shown.
std::string shown_words(const evidence& e, std::size_t most);

/// Adds a figure. Its id is `kind`, with a number behind it from the second of its kind on.
report::figure& add_figure(report::section& to, const std::string& kind, std::string title,
                           std::string caption, report::plot what);

/// What a figure is drawn of besides all tensors together (""): the norms, which fare differently.
std::vector<std::string> plotted_roles(const evidence& e);

/// "all tensors", or "norm tensors".
std::string tensors_of(const std::string& role);

/// A tensor's elements, under the run that counts most of them.
double elements_of(const evidence& e, std::size_t tensor);

/// The last parts of a name, as many as a figure has room for, behind the number of its layer where
/// that is left out: "3: feed_forward.w2.weight".
std::string end_of_name(const std::string& name);
/// The same, with the class in front where `taken` holds the end of a name already.
std::string end_of_name(const std::string& name, const std::string& role,
                        const std::vector<std::string>& taken);

/// An axis.
report::axis axis_of(std::string title, std::string unit, bool log = false, bool share = false);
/// The same, from `low` to `high`.
report::axis in_range(report::axis a, double low, double high);

/// Panels of block maxima by mantissa, and one of them, with the zone that `r` clamps shaded.
report::bar_chart mantissa_chart();
report::bar_chart::series mantissa_panel(const codec::recipe& r, const std::string& name,
                                         const mantissas& bins);

}  // namespace mx::pages
