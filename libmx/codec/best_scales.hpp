// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

/// What `r` is measured against to say how far its scales are from the best ones: scale=search of
/// squared errors over all codes, in exact arithmetic, with the element format, rounding, scale
/// format, blocks and rotation of `r`, under a tensor scale where `r` has one. None where that is
/// not defined: with an offset, where scales are no codes, under outer scales of rows or given
/// ones, and with stochastic rounding.
std::optional<recipe> with_best_scales(const recipe& r);

}  // namespace mx::codec
