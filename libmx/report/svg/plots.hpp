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

/// Of the view box: half a page, which a phone shows legibly, or a whole one.
inline constexpr double half_width = 460;
inline constexpr double full_width = 940;

/// An entry of the legend: its name, and what draws the sample, sample_width by legend_row.
struct legend_item {
    std::string name;
    canvas sample;
};

/// What is drawn, how large it is, what it is in a sentence for those who cannot see it, and what
/// its signs mean.
struct drawing {
    canvas out;
    double width = half_width;
    double height = 0;
    std::string description;
    std::vector<legend_item> legend;
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
