// SPDX-License-Identifier: Apache-2.0
// The tensors that training a linear layer multiplies.
#pragma once

#include <vector>

#include "datasets/generators/presets.hpp"
#include "datasets/generators/tensor_spec.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::synth {

/// Input (tokens x hidden), weights (ffn x hidden) and output gradient (tokens x ffn) of one layer,
/// stored as `type`.
std::vector<tensor_spec> linear_layer_tensors(const architecture& shape, tensor::dtype type);

}  // namespace mx::synth
