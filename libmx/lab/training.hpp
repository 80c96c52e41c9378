// SPDX-License-Identifier: Apache-2.0
// A training run, step by step. Its bits depend on the request alone: not on threads, instruction
// sets, or where it was stopped and resumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/lab/array.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/lab/model.hpp"
#include "libmx/lab/optimizer.hpp"
#include "libmx/lab/request.hpp"
#include "libmx/report/record.hpp"

namespace mx::lab {

/// One update. `loss` is the loss before it.
struct step_figures {
    float loss;
    double gradient_norm;  ///< L2, of all parameters, before it is clipped
};

class training {
  public:
    /// Starts a run. Throws base::error: usage for a contradictory request, input for files that do
    /// not fit it.
    training(const run_request& request, execution_context on);
    /// Continues from a checkpoint; settle_files() takes `named`. Throws base::error (input) if the
    /// file is not a checkpoint of this version.
    training(const std::string& checkpoint, execution_context on, const named_files& named = {});

    const run_request& request() const { return request_; }
    /// Sets the total number of updates and appends interventions. Past updates stay as they are.
    /// Throws base::error (usage) for interventions at past steps.
    void extend(std::uint64_t steps, const std::vector<intervention>& more);
    /// Makes this run copy number `copy`: weights are perturbed after the updates done so far, or
    /// after update `after`.
    void nudge(std::uint64_t copy, std::uint64_t after);
    /// Probes from now on, as run_request::probe_every and probe_draws have it; no loss depends on
    /// them.
    void observe(std::uint64_t every, int draws);

    std::uint64_t done() const { return history_.size(); }
    bool finished() const { return diverged() || done() >= request_.steps; }
    /// Whether the last loss or gradient is NaN or infinite; no further update is possible.
    bool diverged() const;
    const std::vector<step_figures>& history() const { return history_; }
    /// Probes so far, in step order.
    const std::vector<report::record>& probes() const { return probes_; }

    /// Computes the next update; probes its gradient first if the request says so. If `dump` is not
    /// empty, writes the tensors of the step to that file.
    void step(const std::string& dump = {});

    /// Measures the loss on held-out text with the settings of the next update.
    void evaluate();
    /// The last loss that evaluate() measured; nullopt before the first, and without held-out text.
    const std::optional<double>& held_out_loss() const { return held_out_loss_; }

    /// Writes a checkpoint under a temporary name and renames it. Throws base::error (output).
    void save(const std::string& path) const;

    const std::vector<float>& values() const { return values_.here(); }
    const model& network() const { return *model_; }

  private:
    /// Tag: allocate without initial values, because parameters come from a file.
    struct unfilled {
        bool fresh;
    };
    training(unfilled how, const run_request& request, execution_context on);
    void read_initial_values();
    const precision& precision_now();
    void apply_nudge();
    void take_step(const std::string& dump);
    double gradient_norm();
    void clip(double most, double norm);
    /// Calls work(), again on the host if the device lacks memory.
    template <typename Work>
    void with_memory(Work&& work);
    report::record take_probe(const precision& how);
    void write_dump(const std::string& path, const precision& how);

    run_request request_;
    execution_context on_;
    std::unique_ptr<model> model_;
    mirrored values_, gradients_;
    moments moments_;
    array_of<jobs::part> parts_;  // the parameters
    array_of<double> sums_;       // of their squares
    std::vector<step_figures> history_;
    std::vector<report::record> probes_;
    // The precision of the next step, once known, and the number of interventions applied to it.
    std::optional<precision> how_;
    std::optional<double> held_out_loss_;
    std::size_t how_many_ = 0;
    std::uint64_t norm_bias_updates_ = 0;
};

/// Name of the checkpoint in a run's folder.
using llm::checkpoint_name;

}  // namespace mx::lab
