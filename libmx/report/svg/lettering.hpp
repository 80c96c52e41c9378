// SPDX-License-Identifier: Apache-2.0
// Estimates the width of text, and places the names of rows and points. Font metrics are not
// available here, so widths are upper estimates for common sans-serif fonts.
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
/// The width of the widest of `texts`; 0 if there are none.
double widest(const std::vector<std::string>& texts, double size = font_size);

/// `text` if it fits in `width`, otherwise with its middle omitted.
std::string fitted(const std::string& text, double width, double size = font_size);

/// `text` in lines of at most `width`, broken after blanks and : / , _ + -; longer pieces are not
/// broken.
std::vector<std::string> broken(const std::string& text, double width, double size = font_size);

/// Rows from `top` down, of equal height: the more rows, the lower they are.
struct row_layout {
    double top = 0;
    double height = 0;
    std::size_t stride = 1;  ///< every how manieth name is written
    double names_width = 0;  ///< room on the left, gap included

    double middle(std::size_t row) const { return top + height * (static_cast<double>(row) + 0.5); }
};

/// Rows named `names`; the names are at most `most_width` wide.
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

/// Places labels one after the other. Labels never overlap each other, and overlap points only if
/// there is no other position.
class name_places {
  public:
    /// Labels stay within `bounds`; `points` are the centres of all points, with this radius.
    name_places(area bounds, std::vector<std::pair<double, double>> points, double radius);

    /// The position of a label of this size for the point at (x, y); nullopt if there is none.
    std::optional<area> place(double x, double y, double width, double height);

  private:
    std::size_t covered(const area& a) const;

    area bounds_;
    std::vector<std::pair<double, double>> points_;  // by x
    double radius_;
    std::vector<area> taken_;
};

}  // namespace mx::report::svg
