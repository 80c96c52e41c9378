// SPDX-License-Identifier: Apache-2.0
// One function per kind of plot: from its data to what is inside the <svg> element.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libmx/report/figure.hpp"
#include "libmx/report/svg/canvas.hpp"

namespace mx::report::svg {

inline constexpr double page_width = 720;  ///< of the view box

/// What is drawn, how tall it is, and what it is in a sentence for those who cannot see it.
struct drawing {
    canvas out;
    double height = 0;
    std::string description;
};

/// `id` begins the ids of patterns.
drawing draw(const heat_map& p, const std::string& id);
drawing draw(const line_chart& p, const std::string& id);
drawing draw(const bar_chart& p, const std::string& id);
drawing draw(const scatter_chart& p, const std::string& id);
drawing draw(const stacked_chart& p, const std::string& id);

/// The cell at `row` and `column`; none where it is missing or not finite.
std::optional<double> cell_at(const std::vector<std::vector<std::optional<double>>>& cells,
                              std::size_t row, std::size_t column);

/// An empty frame that says so.
drawing nothing_to_show();

}  // namespace mx::report::svg
