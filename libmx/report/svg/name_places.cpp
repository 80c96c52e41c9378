// SPDX-License-Identifier: Apache-2.0
#include "libmx/report/svg/name_places.hpp"

#include <algorithm>
#include <array>

namespace mx::report::svg {
namespace {

// Directions in the order they read best; y grows downwards.
constexpr std::array<std::pair<int, int>, 8> directions{
    {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {-1, -1}, {1, 1}, {-1, 1}}};
constexpr std::array distances{3.0, 10.0, 20.0, 34.0, 50.0};

// The rectangle beside the square of half side `reach` around (x, y).
area beside(double x, double y, double reach, std::pair<int, int> direction, double width,
            double height) {
    const double dx = direction.first;
    const double dy = direction.second;
    const double middle_x = x + dx * (reach + width / 2);
    const double middle_y = y + dy * (reach + height / 2);
    return {middle_x - width / 2, middle_y - height / 2, middle_x + width / 2,
            middle_y + height / 2};
}

}  // namespace

name_places::name_places(area bounds, std::vector<std::pair<double, double>> points, double radius)
    : bounds_(bounds), points_(std::move(points)), radius_(radius) {
    std::sort(points_.begin(), points_.end());
}

std::size_t name_places::covered(const area& a) const {
    const std::pair<double, double> first(a.left - radius_, -1e9);
    std::size_t count = 0;
    for (auto at = std::lower_bound(points_.begin(), points_.end(), first);
         at != points_.end() && at->first < a.right + radius_; ++at) {
        if (at->second > a.top - radius_ && at->second < a.bottom + radius_) ++count;
    }
    return count;
}

std::optional<area> name_places::place(double x, double y, double width, double height) {
    std::optional<area> best;
    std::size_t least = ~std::size_t{0};
    for (const double distance : distances) {
        for (const auto& direction : directions) {
            const area a = beside(x, y, radius_ + distance, direction, width, height);
            const bool inside = a.left >= bounds_.left && a.right <= bounds_.right &&
                                a.top >= bounds_.top && a.bottom <= bounds_.bottom;
            const auto touches = [&](const area& other) { return a.touches(other); };
            if (!inside || std::any_of(taken_.begin(), taken_.end(), touches)) continue;
            const std::size_t covers = covered(a);
            if (covers < least) {
                least = covers;
                best = a;
            }
        }
        if (least == 0) break;
    }
    if (best) taken_.push_back(*best);
    return best;
}

}  // namespace mx::report::svg
