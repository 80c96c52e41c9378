// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/figure_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/codec/clamp_zone.hpp"

namespace mx::pages {

std::vector<std::size_t> shown_cells(const review_data& e, std::size_t most) {
    std::vector<std::size_t> cells;
    for (std::size_t c = 0; c < std::min(most, e.plan.cells.size()); ++c) cells.push_back(c);
    return cells;
}

std::string shown_text(const review_data& e, std::size_t most) {
    if (e.plan.cells.size() <= most) return {};
    return fmt::format(" The first {} of {} recipes.", most, e.plan.cells.size());
}

std::vector<std::string> plotted_roles(const review_data& e) {
    std::vector<std::string> roles{""};
    const auto is_norm = [](const tensor_class& c) { return c.role == "norm"; };
    if (e.classes.size() > 1 && std::ranges::any_of(e.classes, is_norm)) {
        roles.emplace_back("norm");
    }
    return roles;
}

std::string tensors_of(const std::string& role) {
    return role.empty() ? "all tensors" : fmt::format("{} tensors", role);
}

double elements_of(const review_data& e, std::size_t tensor) {
    std::uint64_t most = 0;
    for (std::size_t run = 0; run < e.table.recipes.size(); ++run) {
        most = std::max(most, e.table.of(tensor, run).elements);
    }
    return static_cast<double>(most);
}

report::bar_chart mantissa_chart() {
    report::bar_chart chart;
    chart.x = in_range(axis_of("mantissa of the block's largest magnitude", ""), 1, 2);
    chart.y = axis_of("blocks", "", false, true);
    return chart;
}

report::bar_chart::series mantissa_panel(const codec::recipe& r, const std::string& name,
                                         const mantissas& bins) {
    report::bar_chart::series s;
    s.name = name;
    for (int i = 0; i <= metrics::mantissa_bins; ++i) {
        s.edges.push_back(1 + static_cast<double>(i) / metrics::mantissa_bins);
    }
    s.counts.assign(bins.begin(), bins.end());
    const codec::clamp_zone zone = codec::clamp_zone_of(r);
    if (!zone.empty()) s.zones.push_back({"clamp zone", zone.from, zone.to});
    return s;
}

}  // namespace mx::pages
