// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/codec/recipe.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::analysis {

/// Empty totals with the facts of `r` that metrics need filled in.
metrics::totals empty_totals(const codec::recipe& r);

}  // namespace mx::analysis
