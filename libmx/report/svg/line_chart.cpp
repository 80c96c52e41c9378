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

constexpr double plot_height = 300;
constexpr double marker_radius = 3.6;
constexpr std::size_t most_markers = 40;   // of a line; other points are still found by pointing
constexpr std::size_t most_points = 2000;  // of a chart, beyond which only markers are
constexpr double longest_series = 200;
constexpr double name_row = 15;

void sample(canvas& out, std::size_t index, double x, double y) {
    out.group(series_class(index));
    out.path(path_data().move(x, y).across(x + sample_width), "line");
    out.path(marker(index, x + sample_width / 2, y, marker_radius), "mark");
    out.close("g");
}

// `every`: whether points without a marker are found by pointing at them as well.
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
        out.titled(line.name + ", " + where + ": " + value_text(p.y, *at.y));
    }
    out.close("g");
    out.close("g");
}

// The names beside the ends of their lines, moved apart where they would touch.
void draw_names(canvas& out, const frame& f, const line_chart& p, double room) {
    struct name {
        std::size_t line;
        double wanted, y;
    };
    std::vector<name> names;
    for (std::size_t i = 0; i < p.lines.size(); ++i) {
        const std::vector<point>& points = p.lines[i].points;
        const auto last = std::find_if(points.rbegin(), points.rend(), drawn);
        const double y = last == points.rend() ? f.bottom() : f.at_y(*last->y);
        names.push_back({i, y, y});
    }
    std::stable_sort(names.begin(), names.end(),
                     [](const name& a, const name& b) { return a.wanted < b.wanted; });
    double above = f.top - name_row;
    for (name& n : names) above = n.y = std::max(n.wanted, above + name_row);
    double below = f.bottom() + name_row;
    for (std::size_t i = names.size(); i-- > 0;) {
        below = names[i].y = std::min(names[i].y, below - name_row);
    }
    for (const name& n : names) {
        sample(out, n.line, f.right() + 12, n.y);
        out.label(f.right() + 12 + sample_width + 6, n.y + 4, "",
                  fitted(p.lines[n.line].name, room));
    }
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
            ++marks;
        }
    }
    if (marks == 0) return nothing_to_show();
    drawing d;
    std::vector<std::string> names;
    for (const line_chart::line& line : p.lines) names.push_back(line.name);
    const bool beside = static_cast<double>(names.size()) * name_row <= plot_height;
    const double room = std::min(widest(names), longest_series);
    frame f;
    f.y = scale_of(p.y, ys, 6);
    f.x = scale_of(p.x, xs, 8, p.x.log ? margin::round : margin::none);
    f.left = room_for_ticks(f.y);
    const double right = beside ? room + sample_width + 22 : 24;
    f.width = page_width - f.left - right;
    f.height = plot_height;
    draw_axes(d.out, f, p.x, p.y, p.zones, false);
    for (std::size_t i = 0; i < p.lines.size(); ++i)
        draw_line(d.out, f, p, i, marks <= most_points);
    d.height = f.bottom() + axes_below;
    if (beside) {
        draw_names(d.out, f, p, room);
    } else {
        std::vector<legend_item> items;
        for (std::size_t i = 0; i < names.size(); ++i) {
            items.push_back(
                {names[i], [i](canvas& out, double x, double y) { sample(out, i, x, y); }});
        }
        d.height += draw_legend(d.out, items, f.left, d.height + 4, page_width - f.left) + 8;
    }
    d.description = fmt::format("Line chart of {} lines and {} points; {} from {} to {}.",
                                p.lines.size(), marks, p.y.title.empty() ? "values" : p.y.title,
                                value_text(p.y, ys.low()), value_text(p.y, ys.high()));
    return d;
}

}  // namespace mx::report::svg
