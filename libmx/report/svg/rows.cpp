// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/rows.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/report/svg/lettering.hpp"
#include "libmx/report/svg/ticks.hpp"

namespace mx::report::svg {
namespace {

constexpr double highest = 22;
constexpr double lowest = 5;
constexpr double page_height = 900;  // what rows share before they reach the lowest height
constexpr double gap = 8;

}  // namespace

row_layout rows_of(const std::vector<std::string>& names, double top, double most_width) {
    row_layout rows;
    rows.top = top;
    const auto count = static_cast<double>(std::max<std::size_t>(1, names.size()));
    rows.height = std::clamp(std::floor(page_height / count), lowest, highest);
    rows.stride = static_cast<std::size_t>(round_above(font_size / rows.height));
    rows.names_width = std::min(widest(names) + gap, most_width);
    return rows;
}

void draw_row_names(canvas& out, const row_layout& rows, const std::vector<std::string>& names,
                    double right) {
    for (std::size_t i = 0; i < names.size(); i += rows.stride) {
        const std::string name = fitted(names[i], rows.names_width - gap);
        out.label(right - gap, rows.middle(i) + 4, "end", name);
    }
}

}  // namespace mx::report::svg
