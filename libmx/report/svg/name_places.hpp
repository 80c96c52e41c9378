// SPDX-License-Identifier: Apache-2.0
// Where the names of points can be written without covering each other.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace mx::report::svg {

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
