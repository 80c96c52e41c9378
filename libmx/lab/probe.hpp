// SPDX-License-Identifier: Apache-2.0
// What a step is measured by, at its parameters and batch.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "libmx/codec/recipe.hpp"
#include "libmx/lab/machine.hpp"
#include "libmx/report/record.hpp"

namespace mx::lab {

/// A gradient q beside the float32 gradient g, in float64. None of it where g is zero, or where
/// something is not finite.
struct gradient_measures {
    double zeta;        ///< |q - g| / |g|
    double cosine;      ///< q.g / (|q| |g|); 0 where q is zero
    double norm_ratio;  ///< |q| / |g|
    double gain;        ///< q.g / |g|^2
    double bias_share;  ///< (1 - gain)^2 |g|^2 / |q - g|^2; 0 where q is g
};

/// Sums that gradient_measures follow from; those of several tensors add up.
struct gradient_sums {
    double qq = 0, gg = 0, qg = 0, dd = 0;
    void add(std::span<const float> q, std::span<const float> g);
    std::optional<gradient_measures> measures() const;
};

/// {"zeta": ..., "cosine": ..., ...}; nulls without measures.
report::record measures_record(const std::optional<gradient_measures>& m);

/// What blocks of the flattened tensor come to under a recipe with 1-D blocks.
struct block_figures {
    double clamp_share;      ///< elements beyond the largest value once scaled
    double last_code_share;  ///< elements that take the largest code of their sign
    double saturated_share;  ///< blocks in which every element that is not zero does
    /// Mean over blocks of how near they are to saturating, at most 1 (codec::block_judge); none
    /// where a block's extremes do not decide.
    std::optional<double> nearness;
};

/// None for recipes whose scales are no powers of two of OCP's arithmetic, and where x is empty or
/// not finite.
std::optional<block_figures> block_figures_of(machine& on, const codec::recipe& r,
                                              std::span<const float> x);
report::record figures_record(const std::optional<block_figures>& f);

/// Where gains are: the least, median (the upper one of two) and largest magnitude, nulls where one
/// is not finite or there are none; and `clamp_zone_from`, where the clamp zone [from, 1) 2^n
/// begins under the recipe (codec::saturation_zone), null where nothing clamps.
report::record gains_record(const codec::recipe& r, std::span<const float> gains);

}  // namespace mx::lab
