// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/legend.hpp"

#include <algorithm>

#include "libmx/report/svg/lettering.hpp"

namespace mx::report::svg {

double draw_legend(canvas& out, const std::vector<legend_item>& items, double left, double top,
                   double width) {
    if (items.empty()) return 0;
    double x = left;
    double y = top + legend_row / 2;
    for (const legend_item& item : items) {
        const std::string name = fitted(item.name, width - sample_width - 6);
        const double wide = sample_width + 6 + width_of(name);
        if (x > left && x + wide > left + width) {
            x = left;
            y += legend_row;
        }
        item.sample(out, x, y);
        out.label(x + sample_width + 6, y + 4, "name", name);
        x += wide + 16;
    }
    return y + legend_row / 2 - top;
}

}  // namespace mx::report::svg
