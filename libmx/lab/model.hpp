// SPDX-License-Identifier: Apache-2.0
// What a training trains: a network, its batches and its loss, behind one interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "libmx/lab/layers.hpp"
#include "libmx/lab/parameters.hpp"

namespace mx::lab {

struct run_request;

/// What a run takes, counted beforehand.
struct model_cost {
    std::size_t parameters = 0;
    std::size_t block_parameters = 0;  ///< without embedding and head
    double flop = 0;                   ///< of a step's products: 2 a multiply-add
    double bytes = 0;                  ///< of parameters, gradients, moments, activations and room
};

/// One network. What is computed depends on the arguments and the request alone; activations of the
/// last forward pass are kept for the backward one.
class model {
  public:
    virtual ~model() = default;

    virtual const parameter_list& parameters() const = 0;
    /// Layers that a precision may set apart, in the order of the forward pass.
    virtual std::vector<layer_name> layers() const = 0;
    virtual std::vector<float> initial_values() const = 0;

    /// Throws base::error (input) where there is no data for so many updates.
    virtual void check_steps(std::uint64_t steps) const = 0;
    /// Makes the batch of update `step`, from 1: a function of it.
    virtual void make_batch(machine& on, std::uint64_t step) = 0;
    /// The mean loss of the batch. Draws of stochastic rounding depend on `seed` and `step`.
    virtual float forward(machine& on, const precision& how, const std::vector<float>& values,
                          std::uint64_t seed, std::uint64_t step) = 0;
    /// Gradients of all parameters, once forward() was called with the same arguments.
    virtual void backward(machine& on, const precision& how, const std::vector<float>& values,
                          std::vector<float>& gradients) = 0;

    /// Inputs and labels of the batch, where they are float32 matrices.
    virtual std::vector<layer_value> batch() const { return {}; }
    /// Lower bound of the expected loss in nats per token; none if unknown.
    virtual std::optional<double> loss_floor() const { return std::nullopt; }
    /// The mean loss of four batches of text that is held out of training, the arguments as of
    /// forward(); none where every batch is new.
    virtual std::optional<double> held_out_loss(machine&, const precision&,
                                                const std::vector<float>&, std::uint64_t,
                                                std::uint64_t) {
        return std::nullopt;
    }
    virtual model_cost cost() const = 0;

    /// Sees what enters layers and the gradients of what leaves them.
    layer_observer observer;
};

/// The model of a request. Throws base::error: input for files that do not fit it.
std::unique_ptr<model> make_model(const run_request& r, machine& on);

/// The layers of the model that it would be.
std::vector<layer_name> layers_of(const run_request& r);

}  // namespace mx::lab
