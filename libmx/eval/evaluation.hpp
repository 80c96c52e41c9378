// SPDX-License-Identifier: Apache-2.0
// Teacher-forced evaluation of a language model: the log-likelihood of given tokens, and how far
// the distributions under recipes are from those of the model as it is.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/eval/arm.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/llm/model_weights.hpp"

namespace mx::eval {

enum class arithmetic : std::uint8_t { float32, float64 };

/// Consecutive tokens that attend to each other, at positions from 0 on. Row r predicts token begin
/// + r + 1; rows [first, last) are scored.
struct window {
    std::size_t begin, count, first, last;
};

/// Windows of `context` tokens, each `stride` after the one before, over `tokens` tokens. Every
/// token but the first is predicted once. 1 <= stride <= context.
std::vector<window> windows_of(std::size_t tokens, std::size_t context, std::size_t stride);
/// Windows of `context` tokens that have nothing to do with each other: the first of each is not
/// predicted. `tokens` is a multiple of `context`.
std::vector<window> separate_windows(std::size_t tokens, std::size_t context);

/// One arm's figures of each scored token, in the order of the windows.
struct token_scores {
    std::vector<double> nll;         ///< -ln Q(token), nats
    std::vector<double> divergence;  ///< sum of P (ln P - ln Q) over the vocabulary, nats
    std::vector<std::uint32_t> top;  ///< the most probable token, the lowest of equals
};

/// The relative squared error of a linear layer's output, on the inputs that it has in the model
/// as it is: |Y_q - Y|^2 / |Y|^2 over all tokens.
struct layer_error {
    std::string layer;
    std::size_t arm;
    double of_weights;  ///< weights quantized
    double of_both;     ///< weights and inputs
};

struct evaluation {
    std::vector<window> windows;
    std::vector<std::uint32_t> predicted;  ///< the token that each scored row predicts
    std::vector<std::size_t> window_of;    ///< of each scored row
    token_scores base;                     ///< divergence: zeros
    std::vector<double> entropy;           ///< of the model as it is, nats
    std::vector<token_scores> arms;
    std::vector<layer_error> layers;  ///< if requested
};

struct evaluation_request {
    std::vector<std::uint32_t> tokens;
    std::vector<window> windows;
    arithmetic in = arithmetic::float32;
    bool layer_errors = false;
    /// Called with the inputs of linear layers ("x"), and turned keys ("k_cache") and values
    /// ("v_cache") by the name of their layer, of the model as it is, window by window. Of all
    /// windows together: the residual stream that enters a block or the last norm ("residual"), and
    /// the input of the head ("x"). Rows are tokens. With `probabilities`, those of
    /// attention too: "p" of the queries' layer, whose rows are the window's tokens for each head.
    std::function<void(std::string_view layer, std::string_view name, std::size_t rows,
                       std::size_t cols, const float* values)>
        observer;
    bool probabilities = false;
    const std::atomic<bool>* cancel = nullptr;  ///< not owned; set, it ends the evaluation
    /// Called before each block with the number of blocks done and that of all.
    std::function<void(std::size_t done, std::size_t all)> progress;
};

/// Runs the model as it is and every arm side by side, block by block: weights are read once, and
/// arms that have not differed so far share a state. Results depend on the arguments alone, not on
/// threads, instruction set or the other arms. Throws base::error (usage) for tokens beyond the
/// vocabulary and windows beyond the model's context.
evaluation evaluate(const model_weights& model, lab::execution_context& on,
                    const std::vector<arm>& arms, const evaluation_request& request);

/// The layers of a model by the names that settings match, in the order of the forward pass. The
/// head is kept unless a pattern names it.
std::vector<lab::layer_name> layers_of(const model_weights& model);

/// Draws `sequences` sequences of `length` tokens from the model as it is, each beginning with the
/// token `start`: token t + 1 by the probabilities that the model gives after t. A draw depends on
/// the seed, the sequence and the position alone.
std::vector<std::uint32_t> sample(const model_weights& model, lab::execution_context& on,
                                  arithmetic in, std::size_t sequences, std::size_t length,
                                  std::uint32_t start, std::uint64_t seed,
                                  const evaluation_request& control);

}  // namespace mx::eval
