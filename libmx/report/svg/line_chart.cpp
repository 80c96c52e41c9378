// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/report/svg/axes.hpp"
#include "libmx/report/svg/lettering.hpp"
#include "libmx/report/svg/markers.hpp"
#include "libmx/report/svg/numbers.hpp"
#include "libmx/report/svg/plots.hpp"

namespace mx::report::svg {
namespace {

constexpr double plot_height = 230;
constexpr double marker_radius = 3.4;
constexpr double marker_spacing = 12;      // along the axis, at least
constexpr double panel_gap = 18;           // between the columns of panels
constexpr double panel_head = 18;          // above a panel, with its name
constexpr std::size_t most_markers = 24;   // per line; other points still have tooltips
constexpr std::size_t most_points = 2000;  // per chart; beyond this, only markers have tooltips
constexpr double least_band = 1;           // in units; thinner bands are not drawn

bool finite(const std::optional<double>& x) { return x && std::isfinite(*x); }
bool banded(const point& at) { return drawn(at) && finite(at.low) && finite(at.high); }

legend_item sample_of(const std::string& name, std::size_t index) {
    legend_item item{name, {}};
    const double middle = legend_row / 2;
    item.sample.group(series_class(index));
    item.sample.path(path_data().move(0, middle).across(sample_width), "line");
    item.sample.path(marker(index, sample_width / 2, middle, marker_radius), "mark");
    item.sample.close("g");
    return item;
}

// What the axes have to hold, and the points that are drawn.
struct extents {
    extent x, y;
    std::size_t marks = 0;
};

extents extent_of(const line_chart& p) {
    extents over;
    for (const line_chart::line& line : p.lines) {
        for (const point& at : line.points) {
            if (!drawn(at)) continue;
            over.x.add(at.x);
            over.y.add(*at.y);
            if (banded(at)) {
                over.y.add(*at.low);
                over.y.add(*at.high);
            }
            ++over.marks;
        }
    }
    for (const level& l : p.levels) over.y.add(l.at);
    return over;
}

// The intervals whose means the points of a line are, with their low and high.
void draw_band(canvas& out, const frame& f, const line_chart::line& line) {
    path_data d;
    double widest = 0;
    for (auto at = line.points.begin(); at != line.points.end();) {
        const auto from = std::find_if(at, line.points.end(), banded);
        at = std::find_if_not(from, line.points.end(), banded);
        if (at - from < 2) continue;
        for (auto p = from; p != at; ++p) {
            p == from ? d.move(f.at_x(p->x), f.at_y(*p->high))
                      : d.line(f.at_x(p->x), f.at_y(*p->high));
            widest = std::max(widest, f.at_y(*p->low) - f.at_y(*p->high));
        }
        for (auto p = at; p != from;) {
            --p;
            d.line(f.at_x(p->x), f.at_y(*p->low));
        }
        d.close();
    }
    if (!d.empty() && widest >= least_band) out.path(d, "band");
}

// `look`: of which series. `every`: whether points without a marker have tooltips as well.
void draw_line(canvas& out, const frame& f, const line_chart& p, std::size_t index,
               std::size_t look, bool every) {
    const line_chart::line& line = p.lines[index];
    const auto fit = static_cast<std::size_t>(f.width / marker_spacing);
    const std::size_t markers = std::clamp<std::size_t>(fit, 1, most_markers);
    const std::size_t stride = (line.points.size() + markers - 1) / markers;
    path_data d;
    bool joined = false;
    for (const point& at : line.points) {
        if (drawn(at)) {
            joined ? d.line(f.at_x(at.x), f.at_y(*at.y)) : d.move(f.at_x(at.x), f.at_y(*at.y));
        }
        joined = drawn(at);
    }
    out.group(series_class(look));
    if (!d.empty()) out.path(d, "line");
    out.group("mark");
    for (std::size_t i = 0; i < line.points.size(); ++i) {
        const point& at = line.points[i];
        if (!drawn(at)) continue;
        const bool seen = beyond(f, at) || i % stride == 0;
        if (!seen && !every) continue;
        out.start("path");
        if (!seen) out.with("class", "touch");
        out.with(shape_at(f, at, look, marker_radius));
        const std::string where =
            at.label.empty() ? p.x.title + " " + value_text(p.x, at.x) : at.label;
        std::string says = line.name + ", " + where + ": " + value_text(p.y, *at.y);
        if (banded(at)) {
            says += fmt::format(" ({} to {})", value_text(p.y, *at.low), value_text(p.y, *at.high));
        }
        out.titled(says);
    }
    out.close("g");
    out.close("g");
}

// The panels in order, the names in the legend, and which of these each line has.
struct arrangement {
    std::vector<std::string> panels, names;
    std::vector<std::size_t> series;
};

arrangement arranged(const line_chart& p) {
    arrangement a;
    const auto index_in = [](std::vector<std::string>& all, const std::string& name) {
        const auto at = std::ranges::find(all, name);
        if (at == all.end()) all.push_back(name);
        return static_cast<std::size_t>(std::ranges::find(all, name) - all.begin());
    };
    for (const line_chart::line& line : p.lines) index_in(a.panels, line.panel);
    for (const line_chart::line& line : p.lines) {
        // In one panel, two lines of one name are two.
        if (a.panels.size() == 1) a.names.push_back(line.name);
        a.series.push_back(a.panels.size() == 1 ? a.names.size() - 1
                                                : index_in(a.names, line.name));
    }
    return a;
}

void draw_lines(canvas& out, const frame& f, const line_chart& p, const arrangement& a,
                const std::string& panel, bool first, bool every) {
    for (std::size_t i = 0; i < p.lines.size(); ++i) {
        if (p.lines[i].panel != panel) continue;
        out.group(series_class(a.series[i]));
        draw_band(out, f, p.lines[i]);
        out.close("g");
    }
    draw_levels(out, f, p.y, p.levels, first);
    for (std::size_t i = 0; i < p.lines.size(); ++i) {
        if (p.lines[i].panel == panel) draw_line(out, f, p, i, a.series[i], every);
    }
}

// Panels in rows; names of levels in the first one only. Returns their lower end.
double draw_panels(canvas& out, frame f, const line_chart& p, const arrangement& a, bool every) {
    const std::size_t columns = a.panels.size() <= 4 ? 2 : a.panels.size() <= 6 ? 3 : 4;
    const double left = f.left;
    f.width =
        (f.width - panel_gap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
    f.height = columns == 2 ? 92 : 64;
    f.x.ticks = scale_of(p.x, extent_of(p).x, static_cast<int>(f.width / 40), margin::none).ticks;
    f.top = 20;
    for (std::size_t i = 0; i < a.panels.size(); ++i) {
        const auto column = static_cast<double>(i % columns);
        f.left = left + column * (f.width + panel_gap);
        if (column == 0) f.top += panel_head + (i == 0 ? 0 : f.height + 8);
        const bool last = i + columns >= a.panels.size();
        draw_zones(out, f, p.x, p.zones);
        draw_grid(out, f, false);
        draw_ticks(out, f, last, column == 0);
        out.label(f.left, f.top - 5, "num", fitted(a.panels[i], f.width + 8, small_size));
        draw_lines(out, f, p, a, a.panels[i], i == 0, every);
    }
    f.width = f.page - left;
    f.left = left;
    draw_y_title(out, f, p.y, 12);
    draw_x_title(out, f, p.x, f.bottom() + 36);
    return f.bottom();
}

}  // namespace

drawing draw(const line_chart& p, const std::string&) {
    const extents over = extent_of(p);
    if (over.marks == 0) return nothing_to_show();
    const arrangement a = arranged(p);
    const bool every = over.marks <= most_points;
    drawing d;
    frame f;
    f.y = scale_of(p.y, over.y, a.panels.size() > 1 ? 4 : 5);
    f.x = scale_of(p.x, over.x, 6, p.x.log ? margin::round : margin::none);
    f.left = room_for_ticks(f.y);
    f.width = d.width - f.left - 14;
    if (a.panels.size() > 1) {
        d.height = draw_panels(d.out, f, p, a, every) + axes_below;
    } else {
        f.height = plot_height;
        draw_axes(d.out, f, p.x, p.y, p.zones, false);
        draw_lines(d.out, f, p, a, a.panels.front(), true, every);
        d.height = f.bottom() + axes_below;
    }
    for (std::size_t i = 0; i < a.names.size(); ++i) d.legend.push_back(sample_of(a.names[i], i));
    d.description =
        fmt::format("Line chart of {} lines and {} points; {} from {} to {}.", p.lines.size(),
                    over.marks, p.y.title.empty() ? "values" : p.y.title,
                    value_text(p.y, over.y.low()), value_text(p.y, over.y.high()));
    return d;
}

}  // namespace mx::report::svg
