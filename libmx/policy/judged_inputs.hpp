// SPDX-License-Identifier: Apache-2.0
// Kept results as a judged model: what commands that read results ask.
#pragma once

#include <span>

#include "libmx/analysis/results_input.hpp"
#include "libmx/policy/judged_model.hpp"

namespace mx::policy {

/// Judges all files together: of a tensor under a recipe the first result counts. Files of another
/// kind than mx.analysis say nothing. Throws base::error (input) for results that cannot be.
judged_model judge_inputs(std::span<const analysis::results_input> inputs, const basis& b);

}  // namespace mx::policy
