// SPDX-License-Identifier: Apache-2.0
// `mx analyze --exact`: recomputes the figures in exact rational arithmetic.
#pragma once

#include <vector>

#include "libmx/analysis/analyze.hpp"

namespace mx::app {

/// Replaces the real-valued figures of `a`, which came from `tensors` with `request`, with the
/// oracle's for the values that `request` prepares in float32: exact counts and sums; roots and
/// logarithms with 50 digits; rounded to double once. Holds one tensor in memory at a time, and is
/// slow. Requires has_oracle. Throws base::error: unavailable for features that the oracle lacks,
/// cancelled between two tensors.
void make_exact(analysis::analysis& a, const std::vector<engine::tensor_ref>& tensors,
                const analysis::analysis_request& request, const engine::run_control& control);

}  // namespace mx::app
