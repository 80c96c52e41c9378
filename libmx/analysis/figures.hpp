// SPDX-License-Identifier: Apache-2.0
// From sums to the figures of a result.
#pragma once

#include <cstddef>

#include "libmx/analysis/analyze.hpp"
#include "libmx/analysis/result.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::analysis {

/// The figures of `t` under a recipe and factor of the request: all of a result but its tensor, the
/// recipe's name, passes, inexact inputs and the tensor scale.
result figures_of(const metrics::totals& t, std::size_t recipe, std::size_t phase,
                  const analysis_request& request);

}  // namespace mx::analysis
