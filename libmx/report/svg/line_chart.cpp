// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "libmx/report/svg/axes.hpp"
#include "libmx/report/svg/lettering.hpp"
#include "libmx/report/svg/markers.hpp"
#include "libmx/report/svg/numbers.hpp"
#include "libmx/report/svg/plots.hpp"

namespace mx::report::svg {
namespace {

constexpr double plot_height = 230;
constexpr double marker_radius = 3.4;
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

// `every`: whether points without a marker have tooltips as well.
void draw_line(canvas& out, const frame& f, const line_chart& p, std::size_t index, bool every) {
    const line_chart::line& line = p.lines[index];
    const std::size_t stride = (line.points.size() + most_markers - 1) / most_markers;
    path_data d;
    bool joined = false;
    for (const point& at : line.points) {
        if (drawn(at)) {
            joined ? d.line(f.at_x(at.x), f.at_y(*at.y)) : d.move(f.at_x(at.x), f.at_y(*at.y));
        }
        joined = drawn(at);
    }
    out.group(series_class(index));
    if (!d.empty()) out.path(d, "line");
    out.group("mark");
    for (std::size_t i = 0; i < line.points.size(); ++i) {
        const point& at = line.points[i];
        if (!drawn(at)) continue;
        const bool seen = beyond(f, at) || i % stride == 0;
        if (!seen && !every) continue;
        out.start("path");
        if (!seen) out.with("class", "touch");
        out.with(shape_at(f, at, index, marker_radius));
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

}  // namespace

drawing draw(const line_chart& p, const std::string&) {
    extent xs;
    extent ys;
    std::size_t marks = 0;
    for (const line_chart::line& line : p.lines) {
        for (const point& at : line.points) {
            if (!drawn(at)) continue;
            xs.add(at.x);
            ys.add(*at.y);
            if (banded(at)) {
                ys.add(*at.low);
                ys.add(*at.high);
            }
            ++marks;
        }
    }
    if (marks == 0) return nothing_to_show();
    for (const level& l : p.levels) ys.add(l.at);
    drawing d;
    frame f;
    f.y = scale_of(p.y, ys, 5);
    f.x = scale_of(p.x, xs, 6, p.x.log ? margin::round : margin::none);
    f.left = room_for_ticks(f.y);
    f.width = d.width - f.left - 14;
    f.height = plot_height;
    draw_axes(d.out, f, p.x, p.y, p.zones, false);
    for (const line_chart::line& line : p.lines) {
        d.out.group(series_class(static_cast<std::size_t>(&line - p.lines.data())));
        draw_band(d.out, f, line);
        d.out.close("g");
    }
    draw_levels(d.out, f, p.y, p.levels);
    for (std::size_t i = 0; i < p.lines.size(); ++i) {
        draw_line(d.out, f, p, i, marks <= most_points);
        d.legend.push_back(sample_of(p.lines[i].name, i));
    }
    d.height = f.bottom() + axes_below;
    d.description = fmt::format("Line chart of {} lines and {} points; {} from {} to {}.",
                                p.lines.size(), marks, p.y.title.empty() ? "values" : p.y.title,
                                value_text(p.y, ys.low()), value_text(p.y, ys.high()));
    return d;
}

}  // namespace mx::report::svg
