// SPDX-License-Identifier: Apache-2.0
// The layers of a training, each with its forward and backward pass. What a backward pass needs is
// kept by the caller; nothing is recorded in between. Matrices are in C order, one row per token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "libmx/base/aligned.hpp"
#include "libmx/lab/machine.hpp"
#include "libmx/lab/operand.hpp"
#include "libmx/lab/precision.hpp"

namespace mx::lab {

using simd::activation;

/// Room that the layers of a training share; what is in it lasts until the next call.
struct layer_room {
    base::aligned_buffer<float> x, w, dy, copy, a, b, gain;
};

/// A tensor of a layer, for who looks on: "x" that enters it or "dy", the gradient of what leaves
/// it. Matrices of rows x cols, valid during the call.
struct layer_value {
    std::string_view layer, name;
    std::size_t rows, cols;
    const float* data;
    bool norm = false;  ///< of a norm
};
using layer_observer = std::function<void(const layer_value&)>;

/// What a layer is computed with.
struct layer_context {
    machine& on;
    const precision& how;  ///< of which a layer takes what its name stands for
    layer_room& room;
    std::uint64_t seed = 0;                    ///< of stochastic rounding
    std::uint64_t step = 0;                    ///< likewise: every step has draws of its own
    const layer_observer* observer = nullptr;  ///< null or empty: none
};

/// Y = X W^T + bias: W is out x in, the bias has `out` numbers or is null.
struct linear_layer {
    std::string_view name;  ///< for random draws
    std::size_t tokens, in, out;
    const float* w;
    const float* bias;
};

/// y (tokens x out) from x (tokens x in).
void linear_forward(const layer_context& c, const linear_layer& l, const float* x, float* y);
/// dx (tokens x in; null: not wanted), dw (out x in) and dbias (out; null: none) from dy.
void linear_backward(const layer_context& c, const linear_layer& l, const float* x, const float* dy,
                     float* dx, float* dw, float* dbias);

/// y = gain * (x - mean) / sqrt(variance + eps) + bias over each row, the variance being the mean
/// square of what is left; `rms` subtracts no mean and has no bias.
struct norm_layer {
    std::string_view name;
    std::size_t tokens, width;
    float eps;
    bool rms;
    const float* gain;
    const float* bias;  ///< null with `rms`, or where it has none
};

/// What the backward pass needs: x without its mean in units of its deviation (tokens x width), and
/// the variance of each row plus eps.
struct norm_kept {
    base::aligned_buffer<float> normal, variance;
};

void norm_forward(const layer_context& c, const norm_layer& l, const float* x, float* y,
                  norm_kept& kept);
/// dx (tokens x width), dgain and dbias (width; null: none). Where the gain has a recipe its
/// gradient passes straight through.
void norm_backward(const layer_context& c, const norm_layer& l, const norm_kept& kept,
                   const float* dy, float* dx, float* dgain, float* dbias);

/// h = phi(u), elementwise; swiglu takes rows of 2 x width and gives rows of width, or, with
/// `gate`, both halves apart. Backward, `dgate` is null without.
void activation_forward(const layer_context& c, activation what, std::size_t tokens,
                        std::size_t width, const float* u, float* h, const float* gate = nullptr);
void activation_backward(const layer_context& c, activation what, std::size_t tokens,
                         std::size_t width, const float* u, const float* dh, float* du,
                         const float* gate = nullptr, float* dgate = nullptr);

/// y = a + b.
void add(machine& on, const float* a, const float* b, std::size_t count, float* y);

/// Rows of a table: y (count x width) from `of` (rows x width) by `index`; and the gradient of the
/// table, sums of rows of dy in float32 from the first to the last, added to dof.
void lookup_forward(machine& on, const float* of, const std::uint8_t* index, std::size_t count,
                    std::size_t width, float* y);
void lookup_backward(machine& on, const float* dy, const std::uint8_t* index, std::size_t count,
                     std::size_t width, float* dof);

/// The mean over tokens of -log softmax(y)[target], rounded to float32 once, and its gradient.
float cross_entropy_loss(machine& on, const float* y, const std::uint8_t* target,
                         std::size_t tokens, std::size_t width, float* gradient);

/// The mean of (y - target)^2 over tokens and features, rounded to float32 once, and its gradient
/// float32(2 / (tokens width)) * (y - target).
float mean_squared_error(machine& on, const float* y, const float* target, std::size_t tokens,
                         std::size_t width, float* gradient);

/// T^2 times the mean over tokens of the Kullback-Leibler divergence of softmax(y / T) from
/// softmax(target / T), and its gradient.
float divergence_loss(machine& on, const float* y, const float* target, std::size_t tokens,
                      std::size_t width, float temperature, float* gradient);

}  // namespace mx::lab
