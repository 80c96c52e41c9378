// SPDX-License-Identifier: Apache-2.0
// Parameter updates from gradients.
#pragma once

#include <cstdint>
#include <span>

#include "libmx/lab/array.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/lab/parameters.hpp"

namespace mx::lab {

enum class optimizer : std::uint8_t { adam, sgd };

/// Adam's moments; empty for SGD.
struct moments {
    mirrored first, second;
};

struct adam_numbers {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    double decay = 0;  ///< of weights, apart from the gradient (AdamW)
    friend bool operator==(const adam_numbers&, const adam_numbers&) = default;
};

/// The number of an update, from 1, for parameters that every step updates, and for norm biases
/// (0: they are left unchanged). As in PyTorch, a parameter's number counts its own updates.
struct update_number {
    std::uint64_t of_all = 1, of_norm_biases = 0;
};

/// Performs an update with learning rate `rate`, of arrays where `on` computes. Adam follows the
/// rounding steps of PyTorch 2.9 on a CPU; scalars are computed in float64 and rounded to float32
/// once:
///   weights first p = fma(-rate decay, p, p);
///   m = fma(1 - b1, g - m, m); v = fma((1 - b2) g, g, b2 v);
///   p += (-(rate / (1 - b1^t)) m) / (sqrt(v) / sqrt(1 - b2^t) + eps), t the parameter's number.
/// SGD: p = fma(-rate, g, p).
void update(execution_context& on, optimizer by, const parameter_list& list,
            const update_number& number, double rate, std::span<const float> gradients,
            std::span<float> values, moments& m, const adam_numbers& adam = {});

}  // namespace mx::lab
