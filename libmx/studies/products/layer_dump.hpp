// SPDX-License-Identifier: Apache-2.0
// The linear layers of a dump, found by the names of its tensors.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/studies/products/stage_list.hpp"

namespace mx::products {

/// X, W and, if the dump has it, dY.
using dumped_layer = std::array<std::optional<engine::tensor_ref>, layer_tensor_names.size()>;

/// The layers whose X and W are among `tensors`, by name in the order of the names: LAYER.x (also
/// input, inputs), LAYER.weight (w, kernel) and LAYER.dy (grad_output, output_grad), where a
/// leading "model.", "activations." or "gradients." is left out, and gradients.LAYER.output is dY.
/// W has two axes, out x in (`transposed`: in x out), and X and dY have extents that fit; other
/// tensors are no layer's. Throws base::error (usage) if there is no layer.
std::map<std::string, dumped_layer> dumped_layers(const std::vector<engine::tensor_ref>& tensors,
                                                  bool transposed);

}  // namespace mx::products
