// SPDX-License-Identifier: Apache-2.0
// The layers of a training run, each with its forward and backward pass. The caller keeps what a
// backward pass needs; there is no tape. Matrices are in C order, one row per token. All pointers
// are to arrays where the context computes (array.hpp), but for those that an observer gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "libmx/lab/array.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/lab/operand.hpp"
#include "libmx/lab/precision.hpp"

namespace mx::lab {

/// Scratch memory shared by the layers of a run; its contents are valid until the next call.
struct layer_buffers {
    array x, w, dy, copy, second, a, b, gain;
    array a_beside, b_beside;  // of products beside others
};

struct linear_layer;

/// A tensor passed to the observer: "x", the input of a layer, or "dy", the gradient of its output.
/// A matrix of rows x cols of the host, valid during the call.
struct layer_value {
    std::string_view layer, name;
    std::size_t rows, cols;
    const float* data;
    bool norm = false;                     ///< of a norm
    const linear_layer* linear = nullptr;  ///< with "dy", without a device: the layer, its input
    const float* input = nullptr;
};
using layer_observer = std::function<void(const layer_value&)>;

/// The precision, seed and scratch memory that a layer computes with.
struct layer_context {
    execution_context& on;
    const precision& how;  ///< of which a layer takes what its name stands for
    layer_buffers& buffers;
    std::uint64_t seed = 0;                    ///< of stochastic rounding
    std::uint64_t step = 0;                    ///< likewise: every step has draws of its own
    const layer_observer* observer = nullptr;  ///< null or empty: none
};

/// Y = X W^T + bias. W is out x in; the bias has `out` elements or is null.
struct linear_layer {
    std::string_view name;  ///< for random draws
    std::size_t tokens, in, out;
    const float* w;
    const float* bias;
};

/// Computes y (tokens x out) from x (tokens x in).
void linear_forward(const layer_context& all, const linear_layer& l, const float* x, float* y);
/// Computes dx (tokens x in; null if not needed), dw (out x in) and dbias (out; null without bias)
/// from dy.
void linear_backward(const layer_context& all, const linear_layer& l, const float* x,
                     const float* dy, float* dx, float* dw, float* dbias);

/// y = gain * (x - mean) / sqrt(variance + eps) + bias over each row, where the variance is the
/// mean square of x - mean. With `rms`, the mean is not subtracted and there is no bias.
struct norm_layer {
    std::string_view name;
    std::size_t tokens, width;
    float eps;
    bool rms;
    const float* gain;
    const float* bias;  ///< null with `rms`, or where it has none
};

/// What the backward pass needs: the normalized x (tokens x width) and, per row, the variance plus
/// eps.
struct norm_kept {
    array normal, variance;
};

void norm_forward(const layer_context& all, const norm_layer& l, const float* x, float* y,
                  norm_kept& kept);
/// Computes dx (tokens x width), dgain and dbias (width; null without bias). If the gain has a
/// recipe, its gradient passes straight through the quantization.
void norm_backward(const layer_context& all, const norm_layer& l, const norm_kept& kept,
                   const float* dy, float* dx, float* dgain, float* dbias);

/// h = phi(u), elementwise. swiglu reduces rows of 2 x width to rows of width; with `gate`, the two
/// halves are separate arrays. In the backward pass, `dgate` is null if there is no `gate`.
void activation_forward(const layer_context& c, activation what, std::size_t tokens,
                        std::size_t width, const float* u, float* h, const float* gate = nullptr);
void activation_backward(const layer_context& c, activation what, std::size_t tokens,
                         std::size_t width, const float* u, const float* dh, float* du,
                         const float* gate = nullptr, float* dgate = nullptr);

/// h = gelu(u) as microxcaling computes it: u * sigmoid(1.59375 (u + 0.044677734375 u^3)), every
/// step rounded as vector-forward.
void stepwise_gelu_forward(const layer_context& c, std::size_t count, const float* u, float* h);

/// y = a + b.
void add(const execution_context& on, const float* a, const float* b, std::size_t count, float* y);

/// Table lookup: y (count x width) from `of` (rows x width) by `index`. The backward pass adds the
/// gradient to dof: rows of dy summed in float32 in ascending order.
void lookup_forward(const execution_context& on, const float* of, const std::uint32_t* index,
                    std::size_t count, std::size_t width, float* y);
void lookup_backward(const execution_context& on, const float* dy, const std::uint32_t* index,
                     std::size_t count, std::size_t width, float* dof);

/// The mean over tokens of -log softmax(y)[target] in nats, rounded to float32 once, and its
/// gradient. `losses` is memory for those of the tokens, here and below.
float cross_entropy_loss(execution_context& on, const float* y, const std::uint32_t* target,
                         std::size_t tokens, std::size_t width, float* gradient,
                         array_of<double>& losses);

/// The mean of (y - target)^2 over tokens and features, rounded to float32 once, and its gradient,
/// float32(2 / (tokens width)) * (y - target).
float mean_squared_error(execution_context& on, const float* y, const float* target,
                         std::size_t tokens, std::size_t width, float* gradient,
                         array_of<double>& losses);

/// T^2 times the mean over tokens of the Kullback-Leibler divergence of softmax(y / T) from
/// softmax(target / T) in nats, and its gradient.
float divergence_loss(execution_context& on, const float* y, const float* target,
                      std::size_t tokens, std::size_t width, float temperature, float* gradient,
                      array_of<double>& losses);

}  // namespace mx::lab
