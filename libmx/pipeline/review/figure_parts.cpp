// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/review/figure_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mx::pipeline::review {

std::vector<std::size_t> shown_cells(const evidence& e, std::size_t most) {
    std::vector<std::size_t> cells;
    for (std::size_t c = 0; c < std::min(most, e.plan.cells.size()); ++c) cells.push_back(c);
    return cells;
}

std::string shown_words(const evidence& e, std::size_t most) {
    if (e.plan.cells.size() <= most) return {};
    return fmt::format(" The first {} of {} recipes.", most, e.plan.cells.size());
}

void add_figure(report::section& to, std::string group, std::string metric, std::string title,
                std::string caption, report::plot what) {
    report::figure f;
    const auto before = std::count_if(to.figures.begin(), to.figures.end(),
                                      [&](const report::figure& o) { return o.group == group; });
    f.id = before == 0 ? group : fmt::format("{}-{}", group, before + 1);
    f.title = std::move(title);
    f.caption = std::move(caption);
    f.what = std::move(what);
    f.group = std::move(group);
    f.metric = std::move(metric);
    to.figures.push_back(std::move(f));
}

report::axis axis_of(std::string title, std::string unit, bool log, bool share) {
    report::axis a;
    a.title = std::move(title);
    a.unit = std::move(unit);
    a.log = log;
    a.share = share;
    return a;
}

}  // namespace mx::pipeline::review
