// SPDX-License-Identifier: Apache-2.0
// Common parts of figures.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libmx/report/document.hpp"

namespace mx::pages {

/// The largest number of recipes in a figure; only the first ones are shown. Lines become hard to
/// read earlier than columns.
inline constexpr std::size_t most_lines = 9;
inline constexpr std::size_t most_figure_recipes = 16;

/// Adds a figure. Its id is `kind`, with a number appended from the second figure of its kind on.
report::figure& add_figure(report::section& to, const std::string& kind, std::string title,
                           std::string caption, report::plot what);

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

}  // namespace mx::pages
