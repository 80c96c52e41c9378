// SPDX-License-Identifier: Apache-2.0
// How far the values of norms lie apart: gains near 1 have a good SQNR and little left of their
// differences.
#pragma once

#include <span>
#include <vector>

#include "libmx/engine/run.hpp"

namespace mx::analysis {

/// By tensor, the standard deviation of its finite values with the request's bias added, of tensors
/// whose role is norm; NaN for others and for what has no finite value. Reads them apart from the
/// run: they are few. Throws base::error.
std::vector<double> spreads_of(std::span<const engine::tensor_ref> tensors,
                               const engine::run_request& request,
                               const engine::run_control& control);

}  // namespace mx::analysis
