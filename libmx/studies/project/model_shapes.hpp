// SPDX-License-Identifier: Apache-2.0
// The work of a transformer's training step by class, counted from its shapes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mx::project {

/// A decoder with gated feed-forward layers.
struct model_shape {
    std::string_view name;
    std::uint64_t hidden = 0, feed_forward = 0, layers = 0, heads = 0, kv_heads = 0, head_size = 0,
                  vocabulary = 0;
    bool tied = false;  ///< the output layer is the embedding
};

/// THE LIST of presets. Source: config.json of the models; arXiv 2407.21783.
inline constexpr std::array model_shapes{
    model_shape{"llama3-8b", 4096, 14336, 32, 32, 8, 128, 128256},
    model_shape{"llama3-70b", 8192, 28672, 80, 64, 8, 128, 128256},
    model_shape{"llama3-405b", 16384, 53248, 126, 128, 8, 128, 128256},
};

inline constexpr std::uint64_t default_sequence = 8192;

/// The preset of that name, or the shape in a Hugging Face config.json. `name` is the model's name.
/// Throws base::error: usage if it is neither a preset nor a file; input for a file that lacks a
/// figure, has one beyond 2^32, or has an unsupported architecture: experts, or feed-forward layers
/// without a gate.
struct named_shape {
    std::string name;
    model_shape shape;
};
named_shape find_model(const std::string& text);

/// The classes of operations of a step.
enum class work : std::uint8_t { mlp, attention, scores, head };
inline constexpr std::array<std::string_view, 4> work_names{"mlp", "attention", "scores", "head"};

/// FLOP of the forward pass per token, by class: feed-forward layers; the four projections of
/// attention; scores and values (SDPA; half with causal attention); the output layer. A training
/// step takes three times as many.
std::array<double, 4> forward_flop(const model_shape& m, double sequence, bool causal);

/// A linear layer: Y = X W^T, W out x in.
struct linear_layer {
    work is;
    std::uint64_t out, in;
};
/// The linear layers of one block; Q, K and V count as one, gate and up as one.
std::vector<linear_layer> linear_layers(const model_shape& m);

/// The number of parameters of all linear layers of the blocks, and of the model without its norms.
double linear_parameters(const model_shape& m);
double parameters(const model_shape& m);

}  // namespace mx::project
