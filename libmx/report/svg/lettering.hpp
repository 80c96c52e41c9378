// SPDX-License-Identifier: Apache-2.0
// How much room text takes, and where names of rows and points are written. There is no font here
// to ask, so widths are estimates on the wide side of the common sans-serif fonts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libmx/report/svg/canvas.hpp"

namespace mx::report::svg {

inline constexpr double font_size = 12;   ///< of labels, in units of the view box
inline constexpr double small_size = 11;  ///< of values in cells and of zones

/// The width of a line of `text`.
double width_of(std::string_view text, double size = font_size);
/// The widest of `texts`; 0 without any.
double widest(const std::vector<std::string>& texts, double size = font_size);

/// `text` when it fits in `width`, otherwise with its middle left out.
std::string fitted(const std::string& text, double width, double size = font_size);

/// `text` in lines of at most `width`, broken behind blanks and : / , _ + -; longer pieces are
/// left whole.
std::vector<std::string> broken(const std::string& text, double width, double size = font_size);

/// Rows from `top` down, all of one height: the more there are, the lower they get.
struct row_layout {
    double top = 0;
    double height = 0;
    std::size_t stride = 1;  ///< every how manieth name is written
    double names_width = 0;  ///< room on the left, gap included

    double middle(std::size_t row) const { return top + height * (static_cast<double>(row) + 0.5); }
};

/// Rows named `names`, whose names take at most `most_width`.
row_layout rows_of(const std::vector<std::string>& names, double top, double most_width);
/// The names, right-aligned at `right`.
void draw_row_names(canvas& out, const row_layout& rows, const std::vector<std::string>& names,
                    double right);

/// A rectangle by its sides.
struct area {
    double left = 0, top = 0, right = 0, bottom = 0;
    bool touches(const area& other) const {
        return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
};

/// Finds places one after the other; names never touch, and touch points only where nothing else
/// is free.
class name_places {
  public:
    /// Names stay within `bounds`; `points` are the middles of all points, of this radius.
    name_places(area bounds, std::vector<std::pair<double, double>> points, double radius);

    /// The place of a name of this size for the point at (x, y); none when all are taken.
    std::optional<area> place(double x, double y, double width, double height);

  private:
    std::size_t covered(const area& a) const;

    area bounds_;
    std::vector<std::pair<double, double>> points_;  // by x
    double radius_;
    std::vector<area> taken_;
};

}  // namespace mx::report::svg
