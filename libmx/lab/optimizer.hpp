// SPDX-License-Identifier: Apache-2.0
// Updates of parameters from gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "libmx/lab/machine.hpp"
#include "libmx/lab/parameters.hpp"

namespace mx::lab {

enum class optimizer : std::uint8_t { adam, sgd };

/// Adam's moments; empty for SGD.
struct moments {
    std::vector<float> first, second;
};

/// Update number `step` (from 1) at the rate `rate`. Adam (0.9, 0.999, eps 1e-8, no weight decay),
/// step by step as PyTorch 2.9 rounds on a CPU: scalars in float64 rounded to float32 once;
/// m = fma(1 - b1, g - m, m); v = fma((1 - b2) g, g, b2 v);
/// p += (-(rate / (1 - b1^t)) m) / (sqrt(v) / sqrt(1 - b2^t) + eps). SGD: p = fma(-rate, g, p).
/// Biases of norms stay as they are unless `norm_bias_trains`.
void update(machine& on, optimizer by, const parameter_list& list, std::uint64_t step, double rate,
            bool norm_bias_trains, const std::vector<float>& gradients, std::vector<float>& values,
            moments& m);

}  // namespace mx::lab
