// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/report/svg/lettering.hpp"
#include "libmx/report/svg/markers.hpp"
#include "libmx/report/svg/numbers.hpp"
#include "libmx/report/svg/plots.hpp"
#include "libmx/report/svg/scale.hpp"

namespace mx::report::svg {
namespace {

constexpr int shades = 10;
constexpr int dark_from = 6;  // shades that are written on in white
constexpr double widest_cell = 110;
constexpr double line_height = 14;

class map_drawer {
  public:
    map_drawer(const heat_map& p, const std::string& id) : p_(p), id_(id) {
        for_each_cell([&](std::size_t, std::size_t, std::optional<double> v) {
            v ? values_.add(*v) : void(undefined_ = true);
        });
        shade_ = scale_of(p.value, values_, 4, margin::none);
    }

    drawing draw() {
        rows_ = rows_of(p_.rows, 0, 190);
        rows_.names_width = std::ceil(rows_.names_width);
        place_columns();
        rows_.top = head_height_ + 6;
        if (undefined_) define_undefined(d_.out, id_);
        d_.out.group("cells");
        for (std::size_t r = 0; r < p_.rows.size(); ++r) draw_row(r);
        d_.out.close("g");
        if (written_) write_values();
        draw_row_names(d_.out, rows_, p_.rows, rows_.names_width);
        draw_column_names();
        d_.height = rows_.top + rows_.height * static_cast<double>(p_.rows.size()) + 12;
        draw_key();
        d_.description =
            fmt::format("Heat map of {} rows and {} columns", p_.rows.size(), p_.columns.size());
        d_.description += values_.empty() ? std::string("; every value is undefined.")
                                          : "; values from " + value_text(p_.value, values_.low()) +
                                                " to " + value_text(p_.value, values_.high()) + ".";
        return std::move(d_);
    }

  private:
    std::optional<double> cell(std::size_t r, std::size_t c) const {
        return cell_at(p_.cells, r, c);
    }

    template <class Body>
    void for_each_cell(const Body& body) const {
        for (std::size_t r = 0; r < p_.rows.size(); ++r) {
            for (std::size_t c = 0; c < p_.columns.size(); ++c) body(r, c, cell(r, c));
        }
    }

    int shade_of(double v) const {
        if (values_.low() == values_.high()) return 0;
        const double worse = p_.larger_is_worse ? shade_(v) : 1 - shade_(v);
        return std::min(shades - 1, static_cast<int>(worse * shades));
    }

    double x_of(std::size_t c) const {
        return rows_.names_width + cell_width_ * static_cast<double>(c);
    }

    // Names of columns are written upright in a few lines where that fits, otherwise turned.
    void place_columns() {
        const auto count = static_cast<double>(p_.columns.size());
        const double room = page_width - rows_.names_width;
        cell_width_ = std::min(widest_cell, room / count);
        std::size_t lines = 1;
        bool fits = true;
        for (const std::string& name : p_.columns) {
            const std::vector<std::string> parts = broken(name, cell_width_ - 4);
            fits = fits && parts.size() <= 3 && widest(parts) <= cell_width_ - 2;
            lines = std::max(lines, parts.size());
        }
        turned_ = !fits;
        head_height_ = line_height * static_cast<double>(lines);
        if (turned_) {
            const double longest = std::min(widest(p_.columns), longest_name);
            head_height_ = longest * slope + line_height;
            // The last names lean out to the right.
            cell_width_ = std::min(cell_width_, (room - longest * slope - 4) / count);
        }
        // Whole units keep the paths of thousands of cells short.
        cell_width_ = std::max(1.0, std::floor(cell_width_));
        // Two digits rather than none.
        digits_ = values_fit(3) ? 3 : 2;
        written_ = rows_.height >= small_size + 3 && values_fit(digits_);
    }

    bool values_fit(int digits) const {
        bool fit = true;
        for_each_cell([&](std::size_t, std::size_t, std::optional<double> v) {
            fit = fit &&
                  (!v || width_of(short_text(p_.value, *v, digits), small_size) <= cell_width_ - 2);
        });
        return fit;
    }

    // Rows are moved as a whole, so that the paths of their cells stay short.
    void draw_row(std::size_t r) {
        const double top = rows_.top + rows_.height * static_cast<double>(r);
        d_.out.start("g").with("transform", "translate(0 " + coordinate(top) + ")").open();
        for (std::size_t c = 0; c < p_.columns.size(); ++c) {
            const std::optional<double> v = cell(r, c);
            d_.out.start("path");
            v ? d_.out.with("class", fmt::format("h{}", shade_of(*v)))
              : d_.out.with("fill", undefined_fill(id_));
            d_.out.with(box(x_of(c), 0, cell_width_, rows_.height));
            const std::string says = v ? value_text(p_.value, *v) : std::string("undefined");
            d_.out.titled(p_.rows[r] + ", " + p_.columns[c] + ": " + says);
        }
        d_.out.close("g");
    }

    void write_values() {
        for_each_cell([&](std::size_t r, std::size_t c, std::optional<double> v) {
            if (!v) return;
            d_.out.label(x_of(c) + cell_width_ / 2, rows_.middle(r) + 4,
                         shade_of(*v) >= dark_from ? "num mid bright" : "num mid dark",
                         short_text(p_.value, *v, digits_));
        });
    }

    void draw_column_names() {
        // Turned names need the height of a line each.
        const double cells = turned_ ? line_height / cell_width_ : 1;
        const auto stride = static_cast<std::size_t>(round_above(std::max(1.0, cells)));
        for (std::size_t c = 0; c < p_.columns.size(); c += stride) {
            const double middle = x_of(c) + cell_width_ / 2;
            if (turned_) {
                const std::string at = coordinate(middle + 4) + " " + coordinate(rows_.top - 5);
                d_.out.start("text").with("transform", "translate(" + at + ")rotate(-45)");
                d_.out.text(fitted(p_.columns[c], longest_name));
                continue;
            }
            const std::vector<std::string> lines = broken(p_.columns[c], cell_width_ - 4);
            double y = rows_.top - 5 - line_height * static_cast<double>(lines.size() - 1);
            for (const std::string& line : lines) {
                d_.out.label(middle, y, "mid", line);
                y += line_height;
            }
        }
    }

    // The shades from the better to the worse end, and what the ends stand for.
    void draw_key() {
        const double left = rows_.names_width;
        const double top = d_.height + 18;
        d_.out.label(left, top - 5, "soft", title_text(p_.value) + (p_.value.share ? " (%)" : ""));
        double x = left;
        if (!values_.empty() && values_.low() < values_.high()) {
            const double wide = 22;
            d_.out.group("cells");
            for (int k = 0; k < shades; ++k) {
                const int shade = p_.larger_is_worse ? k : shades - 1 - k;
                d_.out.start("path").with("class", fmt::format("h{}", shade));
                d_.out.with(box(left + wide * k, top, wide, 12)).done();
            }
            d_.out.close("g");
            x += wide * shades;
            d_.out.label(left, top + 26, "num", value_text(p_.value, shade_.low));
            d_.out.label(x, top + 26, "num end", value_text(p_.value, shade_.high));
            d_.out.label(left + wide * shades / 2, top + 26, "num soft mid",
                         shade_.log ? "darker is worse, log" : "darker is worse");
            x += 24;
        } else if (!values_.empty()) {
            const std::string all = "every value is " + value_text(p_.value, values_.low());
            d_.out.label(left, top + 10, "num", all);
            x += width_of(all, small_size) + 24;
        }
        if (undefined_) {
            d_.out.group("cells");
            d_.out.start("path").with("fill", undefined_fill(id_));
            d_.out.with(box(x, top, 22, 12)).done();
            d_.out.close("g");
            d_.out.label(x + 28, top + 10, "num", "undefined");
        }
        d_.height = top + 32;
    }

    static constexpr double longest_name = 190;
    static constexpr double slope = 0.7072;

    const heat_map& p_;
    const std::string& id_;
    drawing d_;
    extent values_;
    scale shade_;
    row_layout rows_;
    bool undefined_ = false;
    bool turned_ = false;
    bool written_ = false;
    int digits_ = 3;
    double cell_width_ = 0;
    double head_height_ = 0;
};

}  // namespace

drawing draw(const heat_map& p, const std::string& id) {
    if (p.rows.empty() || p.columns.empty()) return nothing_to_show();
    return map_drawer(p, id).draw();
}

}  // namespace mx::report::svg
