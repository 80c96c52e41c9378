// SPDX-License-Identifier: Apache-2.0
// Common parts of the figures of a review.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/pages/evidence.hpp"
#include "libmx/pages/histogram_sums.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// The largest number of recipes in a figure; only the first ones are shown. Lines become hard to
/// read earlier than columns.
inline constexpr std::size_t most_lines = 9;
inline constexpr std::size_t most_figure_recipes = 16;

/// The cells of a figure with at most `most` cells.
std::vector<std::size_t> shown_cells(const evidence& e, std::size_t most);

/// "The first 9 of 20 recipes."; empty when all are shown.
std::string shown_text(const evidence& e, std::size_t most);

/// Adds a figure. Its id is `kind`, with a number appended from the second figure of its kind on.
report::figure& add_figure(report::section& to, const std::string& kind, std::string title,
                           std::string caption, report::plot what);

/// The classes with figures of their own besides all tensors (""): norms, whose errors differ.
std::vector<std::string> plotted_roles(const evidence& e);

/// "all tensors", or "norm tensors".
std::string tensors_of(const std::string& role);

/// A tensor's elements under the run that counts the most.
double elements_of(const evidence& e, std::size_t tensor);

/// The last parts of a name, as many as fit in a figure, preceded by the layer number if that is
/// cut off: "3: feed_forward.w2.weight".
std::string end_of_name(const std::string& name);

/// `names` without the parts, ended by '.' or '/', that all begin with and all end with.
std::vector<std::string> told_apart(std::vector<std::string> names);

/// As few of the last parts of each name as tell it from the others: "q_proj", but
/// "attention.output" beside "output".
std::vector<std::string> last_parts(const std::vector<std::string>& names);

/// Labels of some tensors: "3: q_proj" with the layer, if there is one, and the last parts.
std::vector<std::string> labels_of(const std::vector<std::string>& tensors);

/// An axis.
report::axis axis_of(std::string title, std::string unit, bool log = false, bool share = false);
/// The same, from `low` on, and up to `high` if it is given.
report::axis in_range(report::axis a, double low, std::optional<double> high = {});

/// Panels of block maxima by mantissa, and one such panel, with the clamp zone of `r` shaded.
report::bar_chart mantissa_chart();
report::bar_chart::series mantissa_panel(const codec::recipe& r, const std::string& name,
                                         const mantissas& bins);

}  // namespace mx::pages
