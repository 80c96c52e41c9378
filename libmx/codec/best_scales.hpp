// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

/// The reference recipe for the regret of `r`'s scales: scale=search of squared errors over all
/// codes, in exact arithmetic, with the element format, rounding, scale format, blocks and rotation
/// of `r`, and outer scales of the same areas if `r` has any. nullopt if undefined: with an offset,
/// scales without codes, given outer scales of a dialect that stores their inverse, or stochastic
/// rounding.
std::optional<recipe> with_best_scales(const recipe& r);

}  // namespace mx::codec
