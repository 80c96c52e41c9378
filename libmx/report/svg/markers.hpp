// SPDX-License-Identifier: Apache-2.0
// Distinguishes series without colour: shapes of points and hatching of areas.
#pragma once

#include <cstddef>
#include <string>

#include "libmx/report/svg/canvas.hpp"

namespace mx::report::svg {

/// The class of series `index`; ten classes, then they repeat.
std::string series_class(std::size_t index);

/// The shape of series `index` around a point. Ten shapes; when the classes repeat, they are paired
/// with other shapes.
path_data marker(std::size_t index, double x, double y, double radius);

/// An arrow head for a value beyond the axis: up or down, right or left.
path_data arrow(double x, double y, int right, int up);

/// Defines the pattern of an undefined cell; `undefined_fill` refers to it.
void define_undefined(canvas& out, const std::string& id);
std::string undefined_fill(const std::string& id);

/// Defines the patterns of parts 0 to `count` - 1; eight, then they repeat.
void define_parts(canvas& out, const std::string& id, std::size_t count);
std::string part_fill(const std::string& id, std::size_t part);
/// The class of text written on a part.
std::string_view part_ink(std::size_t part);

inline constexpr double sample_width = 28;
inline constexpr double legend_row = 16;  ///< height of a sample

}  // namespace mx::report::svg
