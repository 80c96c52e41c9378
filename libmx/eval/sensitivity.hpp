// SPDX-License-Identifier: Apache-2.0
// How far the loss follows the outputs of linear layers, by one backward pass.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/eval/evaluation.hpp"

namespace mx::eval {

/// Calls `visit` with the gradients of the outputs of every linear layer, window by window, from
/// the last layer of a window to the first: rows x cols, those rows of the window that predict a
/// token. The loss is the sum of -ln P over these tokens, of the model as it is. Computed in
/// float32 by the network of mx train, and independent of threads and instruction set. Throws
/// base::error (input) for models that it does not compute (lab::language_shape_of).
void gradients_of_outputs(const model_weights& model, lab::machine& on,
                          const evaluation_request& request,
                          const std::function<void(std::string_view layer, std::size_t rows,
                                                   std::size_t cols, const float* dy)>& visit);

/// By layer, the mean over tokens of the square of these gradients, for each output.
using output_moments = std::map<std::string, std::vector<double>, std::less<>>;
output_moments gradient_moments(const model_weights& model, lab::machine& on,
                                const evaluation_request& request);

/// What the divergence of a part quantized alone would be if its errors were small and independent
/// over tokens and outputs: 1/2 sum over outputs of mean(error^2) mean(gradient^2), nats a token.
/// `errors`: by layer, sums over `rows` rows of squared errors (evaluation::compared).
double predicted_divergence(const output_moments& moments, const output_errors& errors,
                            std::size_t rows);

}  // namespace mx::eval
