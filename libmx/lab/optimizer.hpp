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

struct adam_numbers {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    double decay = 0;  ///< of weights, apart from the gradient (AdamW)
    friend bool operator==(const adam_numbers&, const adam_numbers&) = default;
};

/// Update number `step` (from 1) at the rate `rate`. Adam, step by step as PyTorch 2.9 rounds on a
/// CPU: scalars in float64 rounded to float32 once; weights first fma(-rate decay, p, p);
/// m = fma(1 - b1, g - m, m); v = fma((1 - b2) g, g, b2 v);
/// p += (-(rate / (1 - b1^t)) m) / (sqrt(v) / sqrt(1 - b2^t) + eps). SGD: p = fma(-rate, g, p).
/// Biases of norms stay as they are unless `norm_bias_trains`.
void update(machine& on, optimizer by, const parameter_list& list, std::uint64_t step, double rate,
            bool norm_bias_trains, const std::vector<float>& gradients, std::vector<float>& values,
            moments& m, const adam_numbers& adam = {});

}  // namespace mx::lab
