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

constexpr double undefined_width = 16;
constexpr double filled = 0.8;  // of a row's height

// Positive parts are stacked to the right, negative ones to the left. Because lengths add up, the
// axis is always linear.
class stack_drawer {
  public:
    stack_drawer(const stacked_chart& p, const std::string& id) : p_(p), id_(id), value_(p.value) {
        value_.log = false;
        values_.add(0);
        double end = 0;
        for (std::size_t c = 0; c < p.categories.size(); ++c) {
            double above = 0;
            double below = 0;
            for (std::size_t k = 0; k < p.parts.size(); ++k) {
                const std::optional<double> v = cell(c, k);
                if (!v) undefined_ = true;
                (v.value_or(0) > 0 ? above : below) += v.value_or(0);
            }
            if (p.waterfall) {
                starts_.push_back(end);
                end += above + below;
                above = below = end;
            }
            values_.add(above);
            values_.add(below);
        }
    }

    drawing draw() {
        rows_ = rows_of(p_.categories, 8, 190);
        f_.y = {};
        f_.left = rows_.names_width;
        f_.top = rows_.top;
        f_.width = d_.width - f_.left - (undefined_ ? 74 : 58);
        f_.height = rows_.height * static_cast<double>(p_.categories.size());
        f_.x = scale_of(value_, values_, 4, margin::round_from_zero);
        path_data grid;
        for (const tick& t : f_.x.ticks) grid.move(f_.at_x(t.value), f_.top).down(f_.bottom());
        out().path(grid, "grid");
        define_parts(out(), id_, p_.parts.size());
        if (undefined_) define_undefined(out(), id_);
        for (std::size_t c = 0; c < p_.categories.size(); ++c) draw_bar(c);
        draw_ticks(out(), f_, true, false);
        if (f_.x.low < 0)
            out().path(path_data().move(f_.at_x(0), f_.top).down(f_.bottom()), "axis");
        draw_row_names(out(), rows_, p_.categories, rows_.names_width);
        draw_x_title(out(), f_, value_, f_.bottom() + 36);
        d_.height = f_.bottom() + 44;
        d_.legend = legend_items();
        d_.description = fmt::format("Stacked bars of {} categories in {} parts.",
                                     p_.categories.size(), p_.parts.size());
        return std::move(d_);
    }

  private:
    canvas& out() { return d_.out; }

    std::optional<double> cell(std::size_t c, std::size_t k) const {
        return cell_at(p_.cells, c, k);
    }

    void draw_bar(std::size_t c) {
        const double high = rows_.height * filled;
        const double top = rows_.middle(c) - high / 2;
        const double start = p_.waterfall ? starts_[c] : 0;
        double above = start;
        double below = start;
        std::string missing;
        std::size_t parts = 0;
        for (std::size_t k = 0; k < p_.parts.size(); ++k) parts += cell(c, k).value_or(0) != 0;
        out().group("parts");
        for (std::size_t k = 0; k < p_.parts.size(); ++k) {
            const std::optional<double> v = cell(c, k);
            if (!v) missing += (missing.empty() ? "" : ", ") + p_.parts[k];
            if (v.value_or(0) == 0) continue;
            double& sum = *v > 0 ? above : below;
            const double ends[] = {f_.at_x(sum), f_.at_x(sum + *v)};
            sum += *v;
            const double left = std::min(ends[0], ends[1]);
            const double wide = std::max(0.5, std::abs(ends[1] - ends[0]));
            out().start("path").with("fill", part_fill(id_, k));
            out().with(box(left, top, wide, high));
            out().titled(p_.categories[c] + ", " + p_.parts[k] + ": " + value_text(value_, *v));
            // The value of the only part is that of the bar, at its end.
            if (parts > 1) write(amount(*v), left, wide, top, k);
        }
        out().close("g");
        double end = f_.at_x(above);
        if (!missing.empty()) {
            out().start("path").with("fill", undefined_fill(id_));
            out().with(box(end + 1, top, undefined_width, high));
            out().titled(p_.categories[c] + ", " + missing + ": undefined");
            end += undefined_width + 1;
        }
        if (rows_.height < small_size + 2) return;
        const double sum = (above - start) + (below - start);
        const bool nothing = sum == 0 && !missing.empty();
        out().label(end + 5, rows_.middle(c) + 4, "num soft", nothing ? "undefined" : amount(sum));
    }

    std::string amount(double v) const { return short_text(value_, v) + (value_.share ? "%" : ""); }

    // The value of a part, if it fits.
    void write(const std::string& text, double left, double wide, double top, std::size_t part) {
        if (rows_.height < small_size + 6 || width_of(text, small_size) + 8 > wide) return;
        out().label(left + wide / 2, top + rows_.height * filled / 2 + 4,
                    std::string("num mid ").append(part_ink(part)), text);
    }

    std::vector<legend_item> legend_items() const {
        std::vector<legend_item> items;
        for (std::size_t k = 0; k < p_.parts.size(); ++k) {
            items.push_back(swatch(p_.parts[k], part_fill(id_, k)));
        }
        if (undefined_) items.push_back(swatch("undefined", undefined_fill(id_)));
        return items;
    }

    static legend_item swatch(const std::string& name, const std::string& fill) {
        legend_item item{name, {}};
        item.sample.group("parts");
        item.sample.start("path").with("fill", fill);
        item.sample.with(box(0, 1, sample_width, legend_row - 2)).done();
        item.sample.close("g");
        return item;
    }

    const stacked_chart& p_;
    const std::string& id_;
    axis value_;
    drawing d_;
    frame f_;
    extent values_;
    std::vector<double> starts_;  // of a waterfall's bars
    row_layout rows_;
    bool undefined_ = false;
};

}  // namespace

drawing draw(const stacked_chart& p, const std::string& id) {
    if (p.categories.empty() || p.parts.empty()) return nothing_to_show();
    return stack_drawer(p, id).draw();
}

}  // namespace mx::report::svg
