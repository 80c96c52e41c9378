// SPDX-License-Identifier: Apache-2.0
// What the looks of series mean: rows of samples with their names.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libmx/report/svg/canvas.hpp"

namespace mx::report::svg {

inline constexpr double sample_width = 28;
inline constexpr double legend_row = 19;  ///< height of a row

struct legend_item {
    std::string name;
    /// Draws the sample, sample_width wide, from `x` on around the middle `y`.
    std::function<void(canvas& out, double x, double y)> sample;
};

/// Items from left to right in as many rows as they need below `top`; returns the height.
double draw_legend(canvas& out, const std::vector<legend_item>& items, double left, double top,
                   double width);

}  // namespace mx::report::svg
