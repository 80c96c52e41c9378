// SPDX-License-Identifier: Apache-2.0
// What a training run optimizes: a network, its batches and its loss, behind one interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/lab/layers.hpp"
#include "libmx/lab/parameters.hpp"

namespace mx::lab {

struct run_request;

/// Estimated cost of a run.
struct model_cost {
    std::size_t parameters = 0;
    std::size_t block_parameters = 0;  ///< without embedding and head
    double flop = 0;                   ///< of a step's products: 2 a multiply-add
    double bytes = 0;  ///< of parameters, gradients, moments, activations and buffers
};

/// Ids of a batch, by the name that a dump gives them.
struct token_values {
    std::string_view name;
    std::span<const std::uint32_t> ids;
};

/// One network. Values and gradients are where `on` computes. Results depend on the arguments and
/// the request alone. Keeps the activations of the last forward pass for the backward pass.
class model {
  public:
    virtual ~model() = default;

    virtual const parameter_list& parameters() const = 0;
    /// The layers that can have a precision of their own, in the order of the forward pass.
    virtual std::vector<layer_name> layers() const = 0;
    virtual std::vector<float> initial_values() const = 0;

    /// Throws base::error (input) if there is too little data for that many updates.
    virtual void check_steps(std::uint64_t steps) const = 0;
    /// Makes the batch of update `step`, counted from 1. Batches depend on `step` and, with
    /// teacher_quantized, on the precision. Throws base::error (input) for that with given labels.
    virtual void make_batch(execution_context& on, const precision& how, std::uint64_t step) = 0;
    /// Returns the mean loss of the batch. Draws of stochastic rounding depend on `seed` and
    /// `step`.
    virtual float forward(execution_context& on, const precision& how,
                          std::span<const float> values, std::uint64_t seed,
                          std::uint64_t step) = 0;
    /// Computes the gradients of all parameters. Call forward() with the same arguments first.
    virtual void backward(execution_context& on, const precision& how,
                          std::span<const float> values, std::span<float> gradients) = 0;

    /// Inputs and labels of the batch, if they are float32 matrices, on the host.
    virtual std::vector<layer_value> batch() const { return {}; }
    /// Token ids of the batch and those that follow them, if it is text.
    virtual std::vector<token_values> token_batch() const { return {}; }
    /// Lower bound of the expected loss in nats per token; nullopt if unknown.
    virtual std::optional<double> loss_floor() const { return std::nullopt; }
    /// The mean loss of four batches of held-out text; arguments as for forward(). nullopt if every
    /// batch is new.
    virtual std::optional<double> held_out_loss(execution_context&, const precision&,
                                                std::span<const float>, std::uint64_t,
                                                std::uint64_t) {
        return std::nullopt;
    }
    virtual model_cost cost() const = 0;

    /// Called with the inputs of layers and the gradients of their outputs.
    layer_observer observer;
};

/// Makes the model of a request. Throws base::error (input) for files that do not fit the request.
std::unique_ptr<model> make_model(const run_request& r, execution_context& on);

/// The layers of that model.
std::vector<layer_name> layers_of(const run_request& r);

}  // namespace mx::lab
