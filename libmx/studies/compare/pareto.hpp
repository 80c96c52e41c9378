// SPDX-License-Identifier: Apache-2.0
// Which cells of a sweep are worth their bits.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace mx::compare {

/// Bits per element against SQNR. A cell without an error has an infinite SQNR.
struct trade {
    double bits = 0;
    std::optional<double> sqnr_db;  ///< none where it is undefined: never on the front
};

inline constexpr double no_error = std::numeric_limits<double>::infinity();

/// SQNRs that differ by less are the same; see same_rmse in ranking.hpp.
inline constexpr double same_decibels = 1e-5;

/// Whether each point lies on the front: no other has as few bits and as high an SQNR, one of them
/// better. Equal points share their fate.
std::vector<bool> pareto_front(std::span<const trade> points);

}  // namespace mx::compare
