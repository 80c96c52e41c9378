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
constexpr int half_shades = 5;  // on either side of a limit
constexpr int strong_from = 5;  // shades far from the background, and of those beside a limit
constexpr int strong_half = 4;
constexpr double widest_cell = 84;
constexpr double least_cell = 32;  // with narrower cells a map takes the whole width
constexpr double line_height = 14;

class map_drawer {
  public:
    map_drawer(const heat_map& p, const std::string& id) : p_(p), id_(id) {
        for_each_cell([&](std::size_t, std::size_t, std::optional<double> v) {
            v ? values_.add(*v) : void(undefined_ = true);
        });
        shade_ = scale_of(p.value, values_, 4, margin::none);
        if (p.limit) reach_ = std::max(shade_.high - *p.limit, *p.limit - shade_.low);
        const double least = std::min(widest(p.rows) + 8, longest_rows) +
                             least_cell * static_cast<double>(p.columns.size());
        if (least > half_width) d_.width = full_width;
    }

    drawing draw() {
        rows_ = rows_of(p_.rows, 0, longest_rows);
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

    // h0 to h9, the worst last. With a limit: g1 to g5 for values within it and b1 to b5 for values
    // beyond it, the furthest last.
    struct shade {
        char family;
        int index;
        bool strong() const { return index >= (family == 'h' ? strong_from : strong_half); }
        std::string name() const { return fmt::format("{}{}", family, index); }
    };

    bool worse_than_limit(double v) const {
        return p_.limit && (p_.larger_is_worse ? v > *p_.limit : v < *p_.limit);
    }

    shade shade_of(double v) const {
        if (p_.limit) {
            const double away = reach_ > 0 ? std::abs(v - *p_.limit) / reach_ : 0;
            const int step = std::min(half_shades - 1, static_cast<int>(away * half_shades));
            return {worse_than_limit(v) ? 'b' : 'g', step + 1};
        }
        // For a single value, a given range tells whether it is bad.
        const bool ranged = p_.value.low && p_.value.high;
        if (shade_.low == shade_.high || (values_.low() == values_.high() && !ranged)) {
            return {'h', 0};
        }
        const double worse = p_.larger_is_worse ? shade_(v) : 1 - shade_(v);
        return {'h', std::min(shades - 1, static_cast<int>(worse * shades))};
    }

    double x_of(std::size_t c) const {
        return rows_.names_width + cell_width_ * static_cast<double>(c);
    }

    // Column names are written horizontally in a few lines if they fit, otherwise rotated.
    void place_columns() {
        const auto count = static_cast<double>(p_.columns.size());
        const double room = d_.width - rows_.names_width;
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
            // The last rotated names extend beyond the right edge.
            cell_width_ = std::min(cell_width_, (room - longest * slope - 4) / count);
        }
        // Integer coordinates keep the paths of thousands of cells short.
        cell_width_ = std::max(1.0, std::floor(cell_width_));
        // Two digits if three do not fit.
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

    // Rows are translated as a whole, so that the paths of their cells stay short.
    void draw_row(std::size_t r) {
        const double top = rows_.top + rows_.height * static_cast<double>(r);
        d_.out.start("g").with("transform", "translate(0 " + coordinate(top) + ")").open();
        for (std::size_t c = 0; c < p_.columns.size(); ++c) {
            const std::optional<double> v = cell(r, c);
            d_.out.start("path");
            v ? d_.out.with("class", shade_of(*v).name() + (worse_than_limit(*v) ? " miss" : ""))
              : d_.out.with("fill", undefined_fill(id_));
            // Values beyond a limit also have an outline, inside the cell.
            const double inset = v && worse_than_limit(*v) ? 1 : 0;
            d_.out.with(
                box(x_of(c) + inset, inset, cell_width_ - 2 * inset, rows_.height - 2 * inset));
            const std::string says = v ? value_text(p_.value, *v) : std::string("undefined");
            const bool noted = r < p_.notes.size() && c < p_.notes[r].size();
            const std::string& note = noted ? p_.notes[r][c] : std::string();
            d_.out.titled(p_.rows[r] + ", " + p_.columns[c] + ": " + says +
                          (note.empty() ? "" : "; " + note));
        }
        d_.out.close("g");
    }

    void write_values() {
        for_each_cell([&](std::size_t r, std::size_t c, std::optional<double> v) {
            if (!v) return;
            d_.out.label(x_of(c) + cell_width_ / 2, rows_.middle(r) + 4,
                         shade_of(*v).strong() ? "num mid strong" : "num mid faint",
                         short_text(p_.value, *v, digits_));
        });
    }

    void draw_column_names() {
        // Rotated names need a line height each.
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

    // The scale of shades from the lowest to the highest value, and the meaning of its ends.
    void draw_key() {
        const double left = std::min(rows_.names_width, d_.width - key_width - 130);
        const double top = d_.height + 18;
        d_.out.label(left, top - 5, "soft", title_text(p_.value) + (p_.value.share ? " (%)" : ""));
        double x = left;
        bool below = p_.limit.has_value();
        if (!values_.empty() && values_.low() < values_.high()) {
            draw_key_shades(left, top);
            const std::string low = value_text(p_.value, shade_.low);
            const std::string high = value_text(p_.value, shade_.high);
            d_.out.label(left, top + 26, "num", low);
            d_.out.label(left + key_width, top + 26, "num end", high);
            std::string middle = p_.larger_is_worse ? "worse \u2192" : "\u2190 worse";
            if (shade_.log) middle += ", log";
            if (p_.limit) middle = "outlined: worse than " + value_text(p_.value, *p_.limit);
            // Below the ends if there is no space between them.
            const double ends = std::max(width_of(low, small_size), width_of(high, small_size));
            below = p_.limit || 2 * ends + width_of(middle, small_size) + 16 > key_width;
            d_.out.label(left + key_width / 2, top + (below ? 40 : 26), "num soft mid", middle);
            x += key_width + 18;
        } else if (!values_.empty()) {
            const std::string all = "every value is " + value_text(p_.value, values_.low());
            d_.out.label(left, top + 10, "num", all);
            x += width_of(all, small_size) + 18;
        }
        if (undefined_) {
            d_.out.group("cells");
            d_.out.start("path").with("fill", undefined_fill(id_));
            d_.out.with(box(x, top, 22, 12)).done();
            d_.out.close("g");
            d_.out.label(x + 26, top + 10, "num", "undefined");
        }
        d_.height = top + (below ? 46 : 32);
    }

    void draw_key_shades(double left, double top) {
        constexpr int pieces = 20;
        const double wide = key_width / pieces;
        d_.out.group("cells");
        for (int k = 0; k < pieces; ++k) {
            const double at = (k + 0.5) / pieces;
            const double v = shade_.log ? shade_.low * std::pow(shade_.high / shade_.low, at)
                                        : shade_.low + (shade_.high - shade_.low) * at;
            d_.out.start("path").with("class", shade_of(v).name());
            d_.out.with(box(left + wide * k, top, wide, 12)).done();
        }
        d_.out.close("g");
    }

    static constexpr double key_width = 180;
    static constexpr double longest_rows = 190;
    static constexpr double longest_name = 170;
    static constexpr double slope = 0.7072;

    const heat_map& p_;
    const std::string& id_;
    drawing d_;
    extent values_;
    scale shade_;
    double reach_ = 0;  // from the limit to the value furthest from it
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
