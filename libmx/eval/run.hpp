// SPDX-License-Identifier: Apache-2.0
// A whole evaluation, as `mx eval` and libmx.evaluate make it: from a request in words to findings.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libmx/eval/records.hpp"

namespace mx::eval {

struct run_request {
    std::string model;      ///< path (model_weights)
    std::size_t heads = 0;  ///< of a model of llama2.c without configuration
    /// Tokens to predict, and where they are from; or, with `sample`, as many drawn from the model.
    std::vector<std::uint32_t> tokens;
    std::string text;
    bool encoded =
        false;  ///< `tokens` are those of `text` by a tokenizer, not read from a file of ids
    std::size_t sample = 0;
    std::optional<std::uint32_t> start;  ///< the first of a sample; none: the model's, else 0
    std::uint64_t seed = 1;
    /// Tokens of a window and from one to the next; none: see usual_context, and the context.
    std::optional<std::size_t> context, stride;
    arithmetic in = arithmetic::float32;

    /// An arm for each recipe (settings_of_recipe), and for each pair of `weights` and
    /// `activations`, under each of `kv` and `attention`.
    std::vector<std::string> recipes, weights, activations, kv, attention;
    std::vector<std::string> at;  ///< settings of all arms: "PATTERN:KEY=VALUE"
    std::string accumulate;       ///< of all arms: an accumulator model; "": chains

    std::optional<level> each;  ///< parts alone, and all but each
    bool measured = true;       ///< by evaluation of every part
    bool by_gradient = false;   ///< by one backward pass (sensitivity.hpp)
    std::size_t pairs = 0;      ///< of these parts, drawn by the seed
    bool layer_errors = false, per_token = false;
    std::vector<std::string> dump;  ///< names of activations (activation_file)
    std::string dump_file;

    const std::atomic<bool>* cancel = nullptr;  ///< not owned
    /// Called with what is being done and how much of it, before each step.
    std::function<void(const char* what, std::size_t done, std::size_t all)> progress;
};

/// Tokens of a window, unless the model's context is less.
inline constexpr std::size_t usual_context = 2048, usual_sample_context = 256;

/// The level of that name: layer, block, kind or tensor. Throws base::error (usage).
level level_named(const std::string& name);

/// Throws base::error (usage) for requests that contradict themselves or the model, and as
/// model_weights does.
findings run(const run_request& request, lab::execution_context& on);

}  // namespace mx::eval
