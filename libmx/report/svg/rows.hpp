// SPDX-License-Identifier: Apache-2.0
// Plots with a row per name: how high rows are and which of their names are written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/report/svg/canvas.hpp"

namespace mx::report::svg {

/// Rows from `top` down, all of one height: the more there are, the lower they get.
struct row_layout {
    double top = 0;
    double height = 0;
    std::size_t stride = 1;  ///< every how manieth name is written
    double names_width = 0;  ///< room on the left, gap included

    double middle(std::size_t row) const { return top + height * (static_cast<double>(row) + 0.5); }
};

/// Rows named `names`, whose names take at most `most_width`.
row_layout rows_of(const std::vector<std::string>& names, double top, double most_width);
/// The names, right-aligned at `right`.
void draw_row_names(canvas& out, const row_layout& rows, const std::vector<std::string>& names,
                    double right);

}  // namespace mx::report::svg
