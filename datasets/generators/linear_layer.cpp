// SPDX-License-Identifier: Apache-2.0
// As in transformer.cpp: activations with a few large channels that are large for every token,
// weights with the same channels, log-normal gradients. A gradient's size differs from token to
// token, most of all: tokens that the model predicts well send back next to nothing. All elements
// are drawn independently, so that no product of these tensors has a structure of its own.
#include "datasets/generators/linear_layer.hpp"

#include <cmath>

namespace mx::synth {

std::vector<tensor_spec> linear_layer_tensors(const architecture& shape, tensor::dtype type) {
    tensor_spec x;
    x.name = "activations.linear.input";
    x.type = type;
    x.shape = {shape.tokens, shape.hidden};
    x.draw = law::student_t6;
    x.row_spread = 0.15;
    x.outliers = {"residual", 0.01, 20.0};

    tensor_spec w;
    w.name = "model.linear.weight";
    w.type = type;
    w.shape = {shape.ffn, shape.hidden};
    w.draw = law::student_t14;
    w.scale = 0.9 / std::sqrt(static_cast<double>(shape.hidden));
    w.row_spread = 0.1;
    w.outliers = {"residual", 0.01, 3.0};

    tensor_spec dy;
    dy.name = "gradients.linear.output";
    dy.type = type;
    dy.shape = {shape.tokens, shape.ffn};
    dy.draw = law::log_normal2;
    dy.scale = 1e-5;
    dy.row_spread = 1.0;
    return {x, w, dy};
}

}  // namespace mx::synth
