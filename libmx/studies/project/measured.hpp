// SPDX-License-Identifier: Apache-2.0
// Rates from measured times of matrix products.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/studies/project/projection.hpp"

namespace mx::project {

struct measured_rates {
    double seconds = 0;             ///< of a step of `tokens` under bf16
    std::size_t exact = 0, of = 0;  ///< products that were measured in their own shape
    std::vector<unit> missing;      ///< units without a row, whose rates stay the profile's
};

/// Takes shares and rates from a table with columns M, N, K, format (bf16, fp8, fp6, fp4) and
/// seconds: the three products of every linear layer for `tokens` tokens, M x K times K x N, each
/// at the rate in FLOP a second of the measured shape nearest to it. Scores and the output layer
/// run at the mean rate of bf16's products. Throws base::error (input).
measured_rates take_measured(const std::string& path, const model_shape& m, double tokens,
                             assumptions& a);

}  // namespace mx::project
