// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/axes.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/report/svg/lettering.hpp"
#include "libmx/report/svg/markers.hpp"
#include "libmx/report/svg/numbers.hpp"
#include "libmx/report/svg/plots.hpp"

namespace mx::report::svg {
namespace {

// A zone as a stretch of the frame, from left to right; empty when it is outside.
struct stretch {
    double from, to;
    bool empty() const { return !(to > from); }
};

stretch stretch_of(const frame& f, const zone& z) {
    if (std::isnan(z.from) || std::isnan(z.to)) return {0, 0};
    const double low = std::min(z.from, z.to);
    const double high = std::max(z.from, z.to);
    if (high < f.x.low || low > f.x.high) return {0, 0};
    const stretch s{f.at_x(low), f.at_x(high)};
    // A zone of a single value is still seen.
    return s.to - s.from < 1 ? stretch{s.from - 0.5, s.from + 0.5} : s;
}

// Every how manieth text can be written so that none touch.
std::size_t stride_of(const frame& f) {
    const std::vector<tick>& ticks = f.x.ticks;
    for (std::size_t stride = 1; stride < ticks.size(); ++stride) {
        double end = -1e9;
        bool fits = true;
        for (std::size_t i = 0; i < ticks.size() && fits; i += stride) {
            const double half = width_of(ticks[i].text) / 2;
            const double middle = f.at_x(ticks[i].value);
            fits = middle - half > end + 6;
            end = middle + half;
        }
        if (fits) return stride;
    }
    return std::max<std::size_t>(1, ticks.size());
}

}  // namespace

double room_for_ticks(const scale& y) {
    double most = 0;
    for (const tick& t : y.ticks) most = std::max(most, width_of(t.text));
    return most + 10;
}

void draw_grid(canvas& out, const frame& f, bool both) {
    path_data d;
    for (const tick& t : f.y.ticks) d.move(f.left, f.at_y(t.value)).across(f.right());
    if (both) {
        for (const tick& t : f.x.ticks) d.move(f.at_x(t.value), f.top).down(f.bottom());
    }
    if (!d.empty()) out.path(d, "grid");
}

void draw_ticks(canvas& out, const frame& f, bool x_texts, bool y_texts) {
    path_data d;
    d.move(f.left, f.top).down(f.bottom()).across(f.right());
    for (const tick& t : f.x.ticks) d.move(f.at_x(t.value), f.bottom()).down(f.bottom() + 4);
    for (const tick& t : f.y.ticks) d.move(f.left, f.at_y(t.value)).across(f.left - 4);
    out.path(d, "axis");
    const std::size_t stride = stride_of(f);
    for (std::size_t i = 0; x_texts && i < f.x.ticks.size(); i += stride) {
        const tick& t = f.x.ticks[i];
        const double last = f.page - width_of(t.text) / 2;
        out.label(std::min(f.at_x(t.value), last), f.bottom() + 17, "mid", t.text);
    }
    double last = 1e9;
    for (const tick& t : f.y.ticks) {
        const double y = f.at_y(t.value);
        if (!y_texts || last - y < font_size) continue;
        out.label(f.left - 7, y + 4, "end", t.text);
        last = y;
    }
}

void draw_x_title(canvas& out, const frame& f, const axis& x, double baseline) {
    const std::string title = title_text(x);
    if (!title.empty()) out.label(f.left + f.width / 2, baseline, "soft mid", title);
}

void draw_y_title(canvas& out, const frame& f, const axis& y, double baseline) {
    const std::string title = title_text(y);
    const double left = std::max(0.0, f.left - room_for_ticks(f.y) + 2);
    if (!title.empty()) out.label(left, baseline, "soft", title);
}

void draw_zones(canvas& out, const frame& f, const axis& x, const std::vector<zone>& zones) {
    for (const zone& z : zones) {
        const stretch s = stretch_of(f, z);
        if (s.empty()) continue;
        std::string says = z.label.empty() ? "zone" : z.label;
        if (std::isfinite(z.from)) says += ", from " + value_text(x, z.from);
        if (std::isfinite(z.to)) says += ", to " + value_text(x, z.to);
        out.start("path").with("class", "zone");
        out.with(box(s.from, f.top, s.to - s.from, f.height)).titled(says);
        path_data edges;
        edges.move(s.from, f.top).down(f.bottom()).move(s.to, f.top).down(f.bottom());
        out.path(edges, "edge");
    }
}

int draw_zone_names(canvas* out, const frame& f, const std::vector<zone>& zones) {
    std::vector<std::vector<stretch>> rows;
    for (const zone& z : zones) {
        const stretch s = stretch_of(f, z);
        if (s.empty() || z.label.empty()) continue;
        const std::string name = fitted(z.label, f.width, small_size);
        const double half = std::min(width_of(name, small_size), f.width) / 2;
        const double middle = std::clamp((s.from + s.to) / 2, f.left + half,
                                         std::max(f.left + half, f.right() - half));
        const auto touches = [&](const stretch& taken) {
            return middle - half < taken.to + 6 && taken.from < middle + half + 6;
        };
        std::size_t row = 0;
        while (row < rows.size() && std::ranges::any_of(rows[row], touches)) ++row;
        if (row == rows.size()) rows.emplace_back();
        rows[row].push_back({middle - half, middle + half});
        if (out == nullptr) continue;
        out->label(middle, f.top - 5 - zone_row * static_cast<double>(row), "num mid", name);
    }
    return static_cast<int>(rows.size());
}

void draw_axes(canvas& out, frame& f, const axis& x, const axis& y, const std::vector<zone>& zones,
               bool both) {
    f.top = (title_text(y).empty() ? 10 : 26) + zone_row * draw_zone_names(nullptr, f, zones);
    draw_zones(out, f, x, zones);
    draw_zone_names(&out, f, zones);
    draw_grid(out, f, both);
    draw_ticks(out, f, true, true);
    draw_y_title(out, f, y, 12);
    draw_x_title(out, f, x, f.bottom() + 36);
}

void draw_levels(canvas& out, const frame& f, const axis& y, const std::vector<level>& levels,
                 bool named) {
    for (const level& l : levels) {
        if (!std::isfinite(l.at) || f.y.beyond(l.at) != 0) continue;
        const double at = f.at_y(l.at);
        out.start("path")
            .with("class", l.label.empty() ? "axis" : "level")
            .with(path_data().move(f.left, at).across(f.right()));
        out.titled((l.label.empty() ? "" : l.label + ": ") + value_text(y, l.at));
        if (!named) continue;
        const std::string name = fitted(l.label, f.width, small_size);
        out.label(f.right() - 2, at < f.top + 14 ? at + 12 : at - 4, "num end halo", name);
    }
}

bool drawn(const point& at) { return std::isfinite(at.x) && at.y && std::isfinite(*at.y); }

bool beyond(const frame& f, const point& at) {
    return f.y.beyond(*at.y) != 0 || f.x.beyond(at.x) != 0;
}

path_data shape_at(const frame& f, const point& at, std::size_t index, double radius) {
    const double x = f.at_x(at.x);
    const double y = f.at_y(*at.y);
    return beyond(f, at) ? arrow(x, y, f.x.beyond(at.x), f.y.beyond(*at.y))
                         : marker(index, x, y, radius);
}

}  // namespace mx::report::svg
