// SPDX-License-Identifier: Apache-2.0
// The effect of a recipe on normal data: the reference that it is judged against.
#pragma once

#include "libmx/codec/recipe.hpp"
#include "libmx/metrics/row.hpp"

namespace mx::policy {

/// The figures of `r` on standard normal numbers, at least 65,536 of them, the same on every
/// machine. A rotation does not change the distribution and is left out. Rows under scale=channel
/// have 4,096 numbers: the longer a row, the larger its maximum and the coarser an integer's grid.
metrics::row figures_on_normal_data(const codec::recipe& r);

}  // namespace mx::policy
