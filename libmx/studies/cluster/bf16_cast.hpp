// SPDX-License-Identifier: Apache-2.0
// What it costs to store a tensor as bfloat16 instead of quantizing it.
#pragma once

#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/report/record.hpp"

namespace mx::cluster {

/// sqrt(mean((x - bf16(x))^2)) over the finite values of every tensor, to nearest even; null where
/// there are none, and where a value rounds beyond bfloat16. Norms get their bias first.
std::vector<report::value> bf16_cast_rmse(const std::vector<engine::tensor_ref>& tensors,
                                          const analysis::analysis_request& request,
                                          const engine::run_control& control);

}  // namespace mx::cluster
