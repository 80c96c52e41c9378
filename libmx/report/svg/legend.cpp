// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/legend.hpp"

#include <algorithm>

#include "libmx/report/svg/lettering.hpp"

namespace mx::report::svg {
namespace {

constexpr double gap = 6;     // between a sample and its name
constexpr double space = 16;  // between items

}  // namespace

double draw_legend(canvas& out, const std::vector<legend_item>& items, double left, double top,
                   double width) {
    if (items.empty()) return 0;
    std::vector<std::string> names;
    std::vector<double> widths;
    double total = 0;
    for (const legend_item& item : items) {
        names.push_back(fitted(item.name, width - sample_width - gap));
        widths.push_back(sample_width + gap + width_of(names.back()) + space);
        total += widths.back();
    }
    // Several rows are read as columns.
    const double pitch = *std::max_element(widths.begin(), widths.end());
    if (total - space > width) std::fill(widths.begin(), widths.end(), pitch);
    double x = left;
    double y = top + legend_row / 2;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (x > left && x + widths[i] - space > left + width) {
            x = left;
            y += legend_row;
        }
        items[i].sample(out, x, y);
        out.label(x + sample_width + gap, y + 4, "", names[i]);
        x += widths[i];
    }
    return y + legend_row / 2 - top;
}

}  // namespace mx::report::svg
