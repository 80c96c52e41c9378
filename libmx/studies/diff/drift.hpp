// SPDX-License-Identifier: Apache-2.0
// Norm gains that approach a recipe's clamp zone. Many of them share a binade, so that they reach
// the zone together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/studies/diff/figures.hpp"
#include "libmx/studies/diff/labels.hpp"

namespace mx::diff {

/// The block maxima of one dump, averaged over blocks: see dump_figures.
struct mean_maxima {
    std::uint64_t blocks = 0;   ///< that have a maximum
    std::uint64_t in_zone = 0;  ///< of these
    double distance = 0;
    double falling = 0;
    double level = 0;
};
/// All zero if no block has a maximum.
mean_maxima mean_of(const dump_figures& d);

/// When a straight line through the mean distances reaches the zone.
struct drift_forecast {
    double at = 0;     ///< a step where steps are known; otherwise dumps after the last one
    double ahead = 0;  ///< steps, or dumps, after the last one
    double r2 = 0;     ///< share of the variance that the line explains
};

/// Block maxima that are about to fall below a power of two: see move_figures.
struct coming_fall {
    std::uint64_t blocks = 0;
    double at = 0;     ///< of the first one: a step where steps are known, else `ahead`
    double ahead = 0;  ///< of it: steps, or dumps, after the last dump
};

struct drift_finding {
    std::string tensor, recipe;
    std::uint64_t blocks = 0;            ///< of the last dump that have a maximum
    std::vector<std::uint64_t> in_zone;  ///< blocks in the clamp zone, by dump
    bool falling = false;                ///< the maxima are, toward the zone one binade below
    /// By dump, the mean over blocks of the octaves from the block's maximum to the edge of the
    /// zone that it approaches: negative before the edge, positive beyond it. Rising: log2(mantissa
    /// / lower edge).
    std::vector<double> distance;
    std::optional<drift_forecast> forecast;
    std::optional<coming_fall> fall;  ///< at the pace of the last two dumps
};

/// Growth of the mean distance below this does not count as drift.
inline constexpr double least_drift_octaves = 1.0 / 64;

/// The coming fall according to the last two dumps; nullopt if no block is near.
std::optional<coming_fall> fall_of(const move_figures& last, const dump_labels& labels);

/// The drift of a tensor through `dumps`, up or down. nullopt if the share of blocks in the zone
/// did not grow, maxima outside the zone did not approach it by least_drift_octaves, and, of three
/// or more dumps, no block has a `fall`. There is a forecast only if three or more distances grow
/// with every dump along a line (r2 at least 0.99) that reaches the zone within ten times the
/// observed steps.
std::optional<drift_finding> drift_of(const std::string& tensor, const std::string& recipe,
                                      const std::vector<mean_maxima>& dumps,
                                      const dump_labels& labels,
                                      const std::optional<coming_fall>& fall = {});

/// The same extrapolation of `distance`, by dump, with a lower requirement: the line must explain
/// at least the share `least_r2` of the variance.
std::optional<drift_forecast> forecast_of(const std::vector<double>& distance,
                                          const dump_labels& labels, double least_r2);

/// The finding in one or two sentences; an extrapolation is labelled as such.
std::string sentence_of(const drift_finding& f, const dump_labels& labels);

}  // namespace mx::diff
