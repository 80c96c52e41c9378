// SPDX-License-Identifier: Apache-2.0
// `mx analyze --exact`: the figures computed once more, in exact rationals.
#pragma once

#include <vector>

#include "libmx/analysis/analyze.hpp"

namespace mx::app {

/// Replaces the real-valued figures of `a`, which came from `tensors` by `request`, with the
/// oracle's for the values that `request` prepares in float32: exact counts and sums, roots and
/// logarithms at 50 digits, rounded to double once. Holds one tensor at a time in memory, and is
/// slow. Of builds that hold the oracle (has_oracle). Throws base::error: unavailable for what the
/// oracle does not state, cancelled between two tensors.
void make_exact(analysis::analysis& a, const std::vector<engine::tensor_ref>& tensors,
                const analysis::analysis_request& request, const engine::run_control& control);

}  // namespace mx::app
