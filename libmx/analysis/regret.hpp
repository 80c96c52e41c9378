// SPDX-License-Identifier: Apache-2.0
// How far the scales of recipes are from the best ones (metrics::when::regret).
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/analysis/analyze.hpp"

namespace mx::analysis {

/// Number of elements that are quantized under searched scales for the regrets of a request's
/// recipes: those of the tensors under every recipe that codec::with_best_scales returns, once for
/// each factor.
std::uint64_t regret_cost(const std::vector<engine::tensor_ref>& tensors,
                          const engine::run_request& request);

/// Measured without a request up to this cost: some seconds of a core.
inline constexpr std::uint64_t cheap_regret = std::uint64_t{1} << 24;

/// Sets best_rmse, regret and regret_share of `results`, those of analyze for the same request.
/// Reads the tensors once more. Throws base::error.
void add_regrets(result_list& results, const std::vector<engine::tensor_ref>& tensors,
                 const analysis_request& request, const engine::run_control& control);

}  // namespace mx::analysis
