// SPDX-License-Identifier: Apache-2.0
// The frame of plots with two axes: where values go, grids, ticks, titles, zones.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/svg/canvas.hpp"
#include "libmx/report/svg/plots.hpp"
#include "libmx/report/svg/scale.hpp"

namespace mx::report::svg {

/// The plotting area and what it maps.
struct frame {
    double left = 0, top = 0, width = 0, height = 0;
    double page = half_width;  ///< of the view box
    scale x, y;

    double right() const { return left + width; }
    double bottom() const { return top + height; }
    double at_x(double v) const { return left + width * x(v); }
    double at_y(double v) const { return bottom() - height * y(v); }
};

/// The room the tick texts of a vertical axis take, gap included.
double room_for_ticks(const scale& y);

/// Lines across at the ticks of y, and down at those of x when `both`.
void draw_grid(canvas& out, const frame& f, bool both);
/// The frame's lower and left lines and their ticks, with or without texts. Texts of the
/// horizontal axis that would touch are left out evenly. 20 units below and room_for_ticks on the
/// left.
void draw_ticks(canvas& out, const frame& f, bool x_texts, bool y_texts);
/// The titles: of y above the upper left corner, of x below the middle at `baseline`.
void draw_x_title(canvas& out, const frame& f, const axis& x, double baseline);
void draw_y_title(canvas& out, const frame& f, const axis& y, double baseline);

/// Zones within the limits of x, drawn below the data; each says its label and limits.
void draw_zones(canvas& out, const frame& f, const axis& x, const std::vector<zone>& zones);
/// Their names, in rows above the frame; call with f.top final. Returns the rows used; with
/// `out` null, only counts them.
int draw_zone_names(canvas* out, const frame& f, const std::vector<zone>& zones);
inline constexpr double zone_row = 14;  ///< height of a row of names

/// What plots of points begin with: zones and their names, the grid (of both axes when `both`), the
/// ticks and the titles. Sets the top of the frame;
/// what is below it takes axes_below.
void draw_axes(canvas& out, frame& f, const axis& x, const axis& y, const std::vector<zone>& zones,
               bool both);
inline constexpr double axes_below = 44;

/// Lines at levels of y, each with its name above its right end if they are `named`.
void draw_levels(canvas& out, const frame& f, const axis& y, const std::vector<level>& levels,
                 bool named = true);

/// Whether a point can be drawn.
bool drawn(const point& at);
/// The shape of series `index` at a point that can be drawn, or an arrow where it is beyond the
/// axes.
path_data shape_at(const frame& f, const point& at, std::size_t index, double radius);
bool beyond(const frame& f, const point& at);

}  // namespace mx::report::svg
