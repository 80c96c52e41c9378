// SPDX-License-Identifier: Apache-2.0
// What a recipe does to the operands of a trained network's linear layers.
#pragma once

#include <cstdint>
#include <span>

#include "libmx/experiments/study.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/lab/precision.hpp"
#include "libmx/lab/tensor_file.hpp"

namespace mx::experiments {

/// Means over the tensors of a kind. For values x that become q: R-MSE is sqrt(mean (q - x)^2).
struct operand_error {
    double rmse_over_rms = 0;
    double rmse_over_amax = 0;
    double gain = 0;               ///< q.x / x.x: 1 where nothing is biased along x
    double rmse_over_rms_all = 0;  ///< over all elements of all tensors, in place of a mean
};

/// Of every linear layer NAME of a dump (mx train --dump), that is one with NAME.weight, NAME.x and
/// NAME.dy: the tensor of the kind as the first product that takes it reads it, W and X of Fprop,
/// dY of Dgrad. `seed` is that of the draws. Tensors of zeros are left out, and layers that recipes
/// leave alone (`kept` in `layers`). Throws base::error
/// (input) where a dump has none of them, or values that are not finite.
operand_error error_of(lab::execution_context& on, const lab::tensor_file& dump,
                       std::span<const lab::layer_name> layers, operand kind,
                       const lab::operand_rule& rule, std::uint64_t seed);

}  // namespace mx::experiments
