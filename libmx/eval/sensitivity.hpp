// SPDX-License-Identifier: Apache-2.0
// How far the loss follows the outputs of linear layers, by one backward pass.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "libmx/eval/evaluation.hpp"
#include "libmx/lab/layers.hpp"

namespace mx::eval {

/// The backward pass of one linear layer of a window.
struct layer_gradient {
    std::string layer;  ///< its name in the model
    const window& of;
    std::size_t number;               ///< of the window
    const lab::linear_layer& values;  ///< `tokens` rows: those of the window that predict a token
    const float* x;                   ///< inputs
    const float* dy;                  ///< gradients of the outputs
    bool neighbours;  ///< outputs are in the order of halves, in the file in that of neighbours
};

/// Calls `visit` for every linear layer, window by window, from the last layer of a window to the
/// first. The loss is the sum of -ln P over the tokens that a window predicts, of the model as it
/// is. Computed in float32 by the network of mx train, and independent of threads and instruction
/// set. Throws base::error (input) for models that it does not compute (lab::language_shape_of).
void gradients_of_outputs(const model_weights& model, lab::execution_context& on,
                          const evaluation_request& request,
                          const std::function<void(const layer_gradient& g)>& visit);

/// Gradients of the outputs, rows x outputs, in the order of the file's rows.
std::vector<float> in_order_of_file(const layer_gradient& g, std::size_t head_size);

/// What the divergence from the model as it is would be with each arm, which quantizes linear
/// layers alone, if errors were small and those of different tokens and layers independent: 1/2 of
/// the mean over tokens of the sum over layers of (e . g)^2, nats a token, where e are the errors
/// of a token's outputs on the inputs of the model as it is, and g their gradients.
std::vector<double> predicted_divergences(const model_weights& model, lab::execution_context& on,
                                          const std::vector<arm>& arms,
                                          const evaluation_request& request);

}  // namespace mx::eval
