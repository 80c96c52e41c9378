// SPDX-License-Identifier: Apache-2.0
// Measurements of a step at its parameters and batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "libmx/codec/recipe.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/report/declared.hpp"

namespace mx::lab {

/// Compares a gradient q with the float32 gradient g, in float64. nullopt if g is zero or anything
/// is NaN or infinite.
struct gradient_measures {
    double zeta;        ///< |q - g| / |g|
    double cosine;      ///< q.g / (|q| |g|); 0 where q is zero
    double norm_ratio;  ///< |q| / |g|
    double gain;        ///< q.g / |g|^2
    double bias_share;  ///< (1 - gain)^2 |g|^2 / |q - g|^2; 0 where q is g
};

/// Sums from which gradient_measures are computed; sums of several tensors can be added.
struct gradient_sums {
    double qq = 0, gg = 0, qg = 0, dd = 0;
    void add(std::span<const float> q, std::span<const float> g);
    std::optional<gradient_measures> measures() const;
};

/// The values are null without measures.
extern const std::array<report::declared<std::optional<gradient_measures>>, 5> measures_members;

/// Figures of the blocks of the flattened tensor under a recipe with 1-D blocks.
struct block_figures {
    double clamp_share;      ///< elements beyond the largest value once scaled
    double last_code_share;  ///< elements that take the largest code of their sign
    double saturated_share;  ///< blocks in which every element that is not zero does
    /// Mean over blocks of the closeness to saturation, at most 1 (engine::block_judge); nullopt if
    /// a block's extremes do not determine saturation.
    std::optional<double> nearness;
};

/// nullopt for recipes whose scales are not powers of two computed by OCP's rule, and if x is empty
/// or contains NaN or Inf.
std::optional<block_figures> block_figures_of(execution_context& on, const codec::recipe& r,
                                              std::span<const float> x);
extern const std::array<report::declared<std::optional<block_figures>>, 4> block_figures_members;

/// Magnitudes of gains: minimum, median (the upper of two) and maximum; null if there are no gains
/// or one is NaN or infinite. `clamp_zone_from` is the lower end of the clamp zone [from, 1) 2^n of
/// the recipe (engine::saturation_zone), or null if nothing clamps.
struct gain_sizes {
    std::optional<double> least, median, largest, clamp_zone_from;
};
gain_sizes gain_sizes_of(const codec::recipe& r, std::span<const float> gains);
extern const std::array<report::declared<gain_sizes>, 4> gain_sizes_members;

/// Gradients under stochastic rounding, with other random bits each.
struct redrawn_gradients {
    int draws;
    double bias, spread;  ///< over |float32 gradient|
};
extern const std::array<report::declared<redrawn_gradients>, 3> redraws_members;

/// What is measured at a step, beside measures_members of all gradients but those of norm biases.
struct step_probe {
    std::optional<gradient_measures> with_norm_biases;
    std::optional<redrawn_gradients> redraws;
    report::record gradients, blocks, gains;  ///< by name
};
extern const std::array<report::declared<step_probe>, 5> probe_members;

}  // namespace mx::lab
