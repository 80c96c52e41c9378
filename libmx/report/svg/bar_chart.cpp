// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/report/svg/axes.hpp"
#include "libmx/report/svg/lettering.hpp"
#include "libmx/report/svg/numbers.hpp"
#include "libmx/report/svg/plots.hpp"

namespace mx::report::svg {
namespace {

using series = bar_chart::series;

constexpr double name_height = 18;
constexpr double gap = 32;  // between panels, in both directions

// One bar: its edges, and its count as a share of the panel's sum.
struct bar {
    std::size_t index;
    double from, to, share;
};

std::vector<bar> bars_of(const series& s) {
    double sum = 0;
    for (const double n : s.counts) sum += std::isfinite(n) && n > 0 ? n : 0;
    std::vector<bar> bars;
    for (std::size_t i = 0; i < s.counts.size() && i + 1 < s.edges.size(); ++i) {
        const double from = s.edges[i];
        const double to = s.edges[i + 1];
        const double n = s.counts[i];
        if (!std::isfinite(from) || !std::isfinite(to) || !std::isfinite(n) || n <= 0) continue;
        bars.push_back({i, std::min(from, to), std::max(from, to), n / sum});
    }
    return bars;
}

void draw_bars(canvas& out, const frame& f, const bar_chart& p, const series& s, const axis& y) {
    out.group("s5 bar");
    for (const bar& b : bars_of(s)) {
        if (b.to < f.x.low || b.from > f.x.high) continue;
        const double left = f.at_x(b.from);
        const double wide = f.at_x(b.to) - left;
        const double high = std::max(1.0, f.bottom() - f.at_y(b.share));
        const double space = wide > 4 ? 1 : 0;
        out.start("path");
        out.with(box(left + space / 2, f.bottom() - high, std::max(0.5, wide - space), high));
        const bool labelled = b.index < s.labels.size() && !s.labels[b.index].empty();
        const std::string where =
            labelled ? s.labels[b.index] : value_text(p.x, b.from) + " to " + value_text(p.x, b.to);
        out.titled(where + ": " + value_text(y, b.share) + ", count " +
                   number_text(s.counts[b.index], 15));
    }
    out.close("g");
}

struct grid {
    std::size_t columns, rows;
    double panel_height;
};

grid grid_of(std::size_t panels) {
    const std::size_t columns = panels <= 1 ? 1 : panels <= 4 ? 2 : 4;
    const double height = columns == 1 ? 200 : columns == 2 ? 110 : 100;
    return {columns, (panels + columns - 1) / columns, height};
}

extent edges_of(const bar_chart& p) {
    extent xs;
    for (const series& s : p.panels) {
        for (const double edge : s.edges) xs.add(edge);
    }
    return xs;
}

extent shares_of(const bar_chart& p) {
    extent ys;
    for (const series& s : p.panels) {
        for (const bar& b : bars_of(s)) ys.add(b.share);
    }
    return ys;
}

}  // namespace

drawing draw(const bar_chart& p, const std::string&) {
    const extent ys = shares_of(p);
    if (ys.empty()) return nothing_to_show();
    axis y = p.y;
    y.share = true;
    drawing d;
    const grid g = grid_of(p.panels.size());
    frame f;
    f.y = scale_of(y, ys, g.columns == 1 ? 6 : 3, margin::round_from_zero);
    const double left = room_for_ticks(f.y);
    const auto columns = static_cast<double>(g.columns);
    d.width = f.page = g.columns > 2 ? full_width : half_width;
    f.width = (d.width - left - 14 - gap * (columns - 1)) / columns;
    f.x = scale_of(p.x, edges_of(p), static_cast<int>(f.width / 60), margin::none);
    f.height = g.panel_height;
    f.left = left;
    // The panels of a row are aligned at the top, so the one with the most zones decides for all.
    int zone_rows = 0;
    for (const series& s : p.panels) {
        zone_rows = std::max(zone_rows, draw_zone_names(nullptr, f, s.zones));
    }
    const double head = name_height + zone_row * zone_rows;
    const double title = title_text(y).empty() ? 0 : 20;
    const double pitch = head + f.height + gap;
    for (std::size_t i = 0; i < p.panels.size(); ++i) {
        const series& s = p.panels[i];
        const std::size_t column = i % g.columns;
        f.left = left + static_cast<double>(column) * (f.width + gap);
        const std::size_t row = i / g.columns;
        f.top = title + head + pitch * static_cast<double>(row);
        draw_zones(d.out, f, p.x, s.zones);
        draw_zone_names(&d.out, f, s.zones);
        draw_grid(d.out, f, false);
        draw_bars(d.out, f, p, s, y);
        draw_ticks(d.out, f, i + g.columns >= p.panels.size(), column == 0);
        d.out.label(f.left, f.top - head + 12, "head", fitted(s.name, f.width));
    }
    const double bottom = title + pitch * static_cast<double>(g.rows) - gap;
    f.left = left;
    if (title > 0) draw_y_title(d.out, f, y, 12);
    f.width = d.width - left - 14;
    draw_x_title(d.out, f, p.x, bottom + 36);
    d.height = bottom + 44;
    d.description = fmt::format("Histograms in {} panels; the highest bar is {}.", p.panels.size(),
                                value_text(y, ys.high()));
    return d;
}

}  // namespace mx::report::svg
