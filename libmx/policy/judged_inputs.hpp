// SPDX-License-Identifier: Apache-2.0
// Results files as a judged model, for commands that read results.
#pragma once

#include <span>

#include "libmx/analysis/results_input.hpp"
#include "libmx/policy/judged_model.hpp"

namespace mx::policy {

/// Judges all files together: the first result of a tensor under a recipe counts. Files of other
/// kinds than mx.analysis are ignored. Throws base::error (input) for impossible results.
judged_model judge_inputs(std::span<const analysis::results_input> inputs, const basis& b);

}  // namespace mx::policy
