// SPDX-License-Identifier: Apache-2.0
// The squared error by origin (`--decompose`): elements that saturate, elements that underflow, and
// rounding on the grid. The parts add up to the whole (docs/design/decomposition.md).
#pragma once

#include "libmx/metrics/totals.hpp"
#include "libmx/report/record.hpp"

namespace mx::metrics {

/// The parts with the rounding between them and the whole given to the largest of them (of equals
/// grid, then clamp): as exact sums clamp + underflow + grid == sum.error2. A part without an error
/// is zero.
part_sums balanced_parts(const totals& t);

/// Object with `total`, `clamp`, `underflow` and `grid`: the exact sums rounded to double once
/// each. Null where nothing is counted.
report::value squared_error(const totals& t);

/// Parts over the whole; null where there is no error.
report::value clamp_error_share(const totals& t);
report::value underflow_error_share(const totals& t);
report::value grid_error_share(const totals& t);

}  // namespace mx::metrics
