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

using mark = scatter_chart::mark;

constexpr double scatter_height = 220;
constexpr double row_height = 15;
constexpr double longest_label = 170;
constexpr double longest_row = 200;
constexpr std::size_t most_names = 120;  // more would not be legible

bool has_range(const point& at) {
    return at.low && at.high && std::isfinite(*at.low) && std::isfinite(*at.high);
}

bool finite(const std::pair<double, double>& at) {
    return std::isfinite(at.first) && std::isfinite(at.second);
}

class scatter_drawer {
  public:
    explicit scatter_drawer(const scatter_chart& p) : p_(p), groups_(p.groups) {
        for (const mark& m : p.marks) {
            if (!drawn(m.at)) continue;
            xs_.add(m.at.x);
            ys_.add(*m.at.y);
            if (has_range(m.at)) {
                extent& along = p.rows.empty() ? ys_ : xs_;
                along.add(*m.at.low);
                along.add(*m.at.high);
            }
            ++count_;
            if (std::ranges::find(groups_, m.group) == groups_.end()) groups_.push_back(m.group);
        }
        for (const auto& at : p.path) {
            if (!finite(at)) continue;
            xs_.add(at.first);
            ys_.add(at.second);
            ++steps_;
        }
        for (const level& l : p.levels) ys_.add(l.at);
        radius_ = count_ <= 200 ? 4.6 : 3;
    }

    drawing draw() {
        if (count_ + steps_ == 0) return nothing_to_show();
        f_.x = scale_of(p_.x, xs_, 6);
        f_.y = p_.rows.empty() ? scale_of(p_.y, ys_, 6) : rows();
        f_.left = room_for_ticks(f_.y);
        f_.width = d_.width - f_.left - 20;
        f_.height = p_.rows.empty() ? scatter_height : row_height * (f_.y.high - f_.y.low);
        draw_axes(out(), f_, p_.x, p_.y, p_.zones, true);
        draw_path();
        draw_levels(out(), f_, p_.y, p_.levels);
        for (std::size_t g = 0; g < groups_.size(); ++g) draw_group(g);
        draw_names();
        d_.height = f_.bottom() + axes_below;
        d_.legend = legend_items();
        d_.description =
            fmt::format("Scatter plot of {} points in {} groups.", count_, groups_.size());
        return std::move(d_);
    }

  private:
    canvas& out() { return d_.out; }
    double x_of(const mark& m) const { return f_.at_x(m.at.x); }
    double y_of(const mark& m) const { return f_.at_y(*m.at.y); }

    scale rows() const {
        scale s{-0.5, static_cast<double>(p_.rows.size()) - 0.5, false, {}};
        for (const std::string& name : p_.rows) {
            s.ticks.push_back({static_cast<double>(s.ticks.size()), fitted(name, longest_row)});
        }
        return s;
    }

    void draw_path() {
        path_data d;
        for (const auto& at : p_.path) {
            if (!finite(at)) continue;
            const double x = f_.at_x(at.first);
            const double y = f_.at_y(at.second);
            if (d.empty()) {
                d.move(x, y);
            } else if (p_.stepped) {
                d.across(x).down(y);
            } else {
                d.line(x, y);
            }
        }
        if (d.empty()) return;
        out().start("path").with("class", "line front").with(d);
        out().titled(p_.path_name.empty() ? "path" : p_.path_name);
    }

    // Labels avoid the path as if it consisted of points.
    void add_path_to(std::vector<std::pair<double, double>>& points) const {
        constexpr int pieces = 40;
        constexpr std::size_t most_steps = 500;  // more would leave no space for labels
        if (steps_ > most_steps) return;
        const std::pair<double, double>* last = nullptr;
        for (const auto& at : p_.path) {
            if (!finite(at)) continue;
            for (int i = 0; last != nullptr && i <= pieces; ++i) {
                const double x = f_.at_x(last->first);
                const double y = f_.at_y(last->second);
                const double dx = (f_.at_x(at.first) - x) * i / pieces;
                const double dy = (f_.at_y(at.second) - y) * i / pieces;
                if (p_.stepped) {
                    points.emplace_back(x + dx, y);
                    points.emplace_back(f_.at_x(at.first), y + dy);
                } else {
                    points.emplace_back(x + dx, y + dy);
                }
            }
            last = &at;
        }
    }

    // What ranges of marks are along.
    const axis& range_of() const { return p_.rows.empty() ? p_.y : p_.x; }

    void draw_ranges(std::size_t g) {
        path_data d;
        for (const mark& m : p_.marks) {
            if (!drawn(m.at) || !has_range(m.at) || m.group != groups_[g]) continue;
            if (p_.rows.empty()) {
                d.move(x_of(m), f_.at_y(*m.at.low)).down(f_.at_y(*m.at.high));
            } else {
                d.move(f_.at_x(*m.at.low), y_of(m)).across(f_.at_x(*m.at.high));
            }
        }
        if (d.empty()) return;
        out().group(series_class(g));
        out().path(d, "range");
        out().close("g");
    }

    void draw_group(std::size_t g) {
        draw_ranges(g);
        out().group(series_class(g) + " mark");
        for (const mark& m : p_.marks) {
            if (!drawn(m.at) || m.group != groups_[g]) continue;
            std::string says = m.at.label;
            if (!m.group.empty()) says += (says.empty() ? "" : ", ") + m.group;
            if (!says.empty()) says += ": ";
            says += p_.x.title + " " + value_text(p_.x, m.at.x);
            if (p_.rows.empty()) says += ", " + p_.y.title + " " + value_text(p_.y, *m.at.y);
            if (has_range(m.at)) {
                says += fmt::format(" ({} to {})", value_text(range_of(), *m.at.low),
                                    value_text(range_of(), *m.at.high));
            }
            out().start("path").with(shape_at(f_, m.at, g, radius_)).titled(says);
        }
        out().close("g");
    }

    void draw_names() {
        std::vector<std::pair<double, double>> points;
        std::vector<const mark*> named;
        for (const mark& m : p_.marks) {
            if (!drawn(m.at)) continue;
            points.emplace_back(x_of(m), y_of(m));
            if (m.named && !m.at.label.empty() && named.size() < most_names) named.push_back(&m);
        }
        add_path_to(points);
        const area bounds{f_.left + 2, f_.top - 6, d_.width - 2, f_.bottom() - 1};
        name_places places(bounds, std::move(points), radius_);
        for (const mark* m : named) {
            const std::string name = fitted(m->at.label, longest_label, small_size);
            const double wide = width_of(name, small_size);
            const double x = x_of(*m);
            const double y = y_of(*m);
            const std::optional<area> a = places.place(x, y, wide, small_size + 2);
            if (!a) continue;
            const double near_x = std::clamp(x, a->left, a->right);
            const double near_y = std::clamp(y, a->top, a->bottom);
            if (std::hypot(near_x - x, near_y - y) > radius_ + 8) {
                out().path(path_data().move(x, y).line(near_x, near_y), "lead");
            }
            out().label((a->left + a->right) / 2, a->bottom - 3, "num mid halo", name);
        }
    }

    std::vector<legend_item> legend_items() const {
        std::vector<legend_item> items;
        const double middle = legend_row / 2;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            if (groups_[g].empty()) continue;
            canvas& to = items.emplace_back(legend_item{groups_[g], {}}).sample;
            to.group(series_class(g) + " mark");
            to.start("path").with(marker(g, sample_width / 2, middle, 4.6)).done();
            to.close("g");
        }
        if (steps_ > 0 && !p_.path_name.empty()) {
            canvas& to = items.emplace_back(legend_item{p_.path_name, {}}).sample;
            to.path(path_data().move(0, middle).across(sample_width), "line front");
        }
        return items;
    }

    const scatter_chart& p_;
    drawing d_;
    frame f_;
    extent xs_, ys_;
    std::vector<std::string> groups_;
    std::size_t count_ = 0, steps_ = 0;
    double radius_ = 0;
};

}  // namespace

drawing draw(const scatter_chart& p, const std::string&) { return scatter_drawer(p).draw(); }

}  // namespace mx::report::svg
