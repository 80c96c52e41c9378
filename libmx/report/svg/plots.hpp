// SPDX-License-Identifier: Apache-2.0
// One function per kind of plot: from its data to the content of the <svg> element.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "libmx/report/figure.hpp"
#include "libmx/report/svg/canvas.hpp"

namespace mx::report::svg {

/// Width of the view box: half a page, which is legible on a phone, or a full page.
inline constexpr double half_width = 460;
inline constexpr double full_width = 940;

/// An entry of the legend: its name, and its sample, sample_width by legend_row.
struct legend_item {
    std::string name;
    canvas sample;
};

/// The drawing, its size, its description in a sentence for screen readers, and its legend.
struct drawing {
    canvas out;
    double width = half_width;
    double height = 0;
    std::string description;
    std::vector<legend_item> legend;
};

/// `id` is the prefix of the ids of patterns.
drawing draw(const heat_map& p, const std::string& id);
drawing draw(const line_chart& p, const std::string& id);
drawing draw(const bar_chart& p, const std::string& id);
drawing draw(const scatter_chart& p, const std::string& id);
drawing draw(const stacked_chart& p, const std::string& id);

/// The cell at `row` and `column`; nullopt if it is missing or not finite.
std::optional<double> cell_at(const std::vector<std::vector<std::optional<double>>>& cells,
                              std::size_t row, std::size_t column);

/// An empty frame with a note that there are no data.
drawing nothing_to_show();

}  // namespace mx::report::svg
