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

/// The block maxima of one dump, in the mean over blocks: see dump_figures.
struct mean_maxima {
    std::uint64_t blocks = 0;   ///< that have a maximum
    std::uint64_t in_zone = 0;  ///< of these
    double distance = 0;
    double falling = 0;
    double level = 0;
};
/// All zero where no block has a maximum.
mean_maxima mean_of(const dump_figures& d);

/// When a straight line through the mean distances reaches the zone.
struct drift_forecast {
    double at = 0;     ///< a step where steps are known; otherwise dumps after the last one
    double ahead = 0;  ///< steps, or dumps, after the last one
    double r2 = 0;     ///< share of the variance that the line explains
};

/// Block maxima that are about to fall through a power of two: see move_figures.
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
    /// Mean over blocks of the octaves from the block's maximum to the edge of the zone that it
    /// moves toward, by dump: negative before it, positive beyond. Rising: log2(mantissa / lower
    /// edge).
    std::vector<double> distance;
    std::optional<drift_forecast> forecast;
    std::optional<coming_fall> fall;  ///< at the pace of the last two dumps
};

/// Mean distances that grew by less are at rest.
inline constexpr double least_drift_octaves = 1.0 / 64;

/// The coming fall that the figures of the last two dumps tell; none where no block is near.
std::optional<coming_fall> fall_of(const move_figures& last, const dump_labels& labels);

/// The drift of a tensor through `dumps`, up or down; none when the share of blocks in the zone did
/// not grow, the maxima, not there yet, did not come nearer by least_drift_octaves, and of three
/// dumps or more no block has a `fall`. The forecast is there only when three or more distances
/// grow with every dump on a line (r2 of 0.99 or more) that reaches the zone within ten times the
/// steps that were seen.
std::optional<drift_finding> drift_of(const std::string& tensor, const std::string& recipe,
                                      const std::vector<mean_maxima>& dumps,
                                      const dump_labels& labels,
                                      const std::optional<coming_fall>& fall = {});

/// The same extrapolation of `distance`, by dump, where the line may explain less: `least_r2` is
/// the share of the variance that it has to.
std::optional<drift_forecast> forecast_of(const std::vector<double>& distance,
                                          const dump_labels& labels, double least_r2);

/// The finding in a sentence or two; the extrapolation says that it is one.
std::string sentence_of(const drift_finding& f, const dump_labels& labels);

}  // namespace mx::diff
