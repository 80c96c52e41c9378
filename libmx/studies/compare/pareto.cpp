// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/pareto.hpp"

#include <algorithm>

namespace mx::compare {
namespace {

bool dominates(const trade& a, const trade& b) {
    if (!a.sqnr_db || a.bits > b.bits) return false;
    const bool better = *a.sqnr_db > *b.sqnr_db + same_decibels;
    return better || (a.bits < b.bits && *a.sqnr_db >= *b.sqnr_db - same_decibels);
}

}  // namespace

std::vector<bool> pareto_front(std::span<const trade> points) {
    std::vector<bool> front;
    for (const trade& p : points) {
        front.push_back(
            p.sqnr_db.has_value() &&
            std::ranges::none_of(points, [&](const trade& other) { return dominates(other, p); }));
    }
    return front;
}

}  // namespace mx::compare
