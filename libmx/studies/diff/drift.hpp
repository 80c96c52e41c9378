// SPDX-License-Identifier: Apache-2.0
// Norm gains on their way to where a recipe clamps: many of them share a binade, so that they reach
// the clamp zone together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/studies/diff/figures.hpp"
#include "libmx/studies/diff/labels.hpp"

namespace mx::diff {

/// When a straight line through the mean distances reaches the zone.
struct drift_forecast {
    double at = 0;     ///< a step where steps are known; otherwise dumps after the last one
    double ahead = 0;  ///< steps, or dumps, after the last one
    double r2 = 0;     ///< share of the variance that the line explains
};

struct drift_finding {
    std::string tensor, recipe;
    std::uint64_t blocks = 0;            ///< of the last dump that have a maximum
    std::vector<std::uint64_t> in_zone;  ///< blocks in the clamp zone, by dump
    bool falling = false;                ///< the maxima are, toward the zone one binade below
    /// Mean over blocks of the octaves from the block's maximum to the edge of the zone that it
    /// moves toward, by dump: negative before it, positive beyond. Rising: log2(mantissa / lower
    /// edge).
    std::vector<double> distance;
    std::optional<drift_forecast> forecast;
};

/// Mean distances that grew by less are at rest.
inline constexpr double least_drift_octaves = 1.0 / 64;

/// The drift of a tensor through `dumps`, up or down; none when the share of blocks in the zone did
/// not grow and the maxima, not there yet, did not come nearer by least_drift_octaves. The forecast
/// is there only when three or more distances grow with every dump on a line (r2 of 0.99 or more)
/// that reaches the zone within ten times the steps that were seen.
std::optional<drift_finding> drift_of(const std::string& tensor, const std::string& recipe,
                                      const std::vector<dump_figures>& dumps,
                                      const dump_labels& labels);

/// The finding in a sentence or two; the extrapolation says that it is one.
std::string sentence_of(const drift_finding& f, const dump_labels& labels);

}  // namespace mx::diff
