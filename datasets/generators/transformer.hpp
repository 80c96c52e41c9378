// SPDX-License-Identifier: Apache-2.0
// The tensors of one transformer: names, shapes and statistics.
#pragma once

#include <vector>

#include "datasets/generators/presets.hpp"
#include "datasets/generators/tensor_spec.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::synth {

/// The tensors of `shape` in file order, floating point ones stored as `type` (two small F32
/// tensors, the BOOL mask and the I64 positions keep their own).
std::vector<tensor_spec> transformer_tensors(const architecture& shape, tensor::dtype type);

}  // namespace mx::synth
