// SPDX-License-Identifier: Apache-2.0
// A training, step by step. Its bits depend on the request alone: not on threads,
// instruction sets, or where it was stopped and resumed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/lab/machine.hpp"
#include "libmx/lab/model.hpp"
#include "libmx/lab/request.hpp"
#include "libmx/report/record.hpp"

namespace mx::lab {

/// One update. The loss is that before it.
struct step_figures {
    float loss;
    double gradient_norm;  ///< L2, of all parameters, before it is clipped
};

class training {
  public:
    /// Begins. Throws base::error: usage for a request that contradicts itself, input for files
    /// that do not fit it.
    training(const run_request& request, int threads, std::string_view backend = {});
    /// Continues from a checkpoint. Throws base::error (input) for what is none, or of another
    /// version.
    training(const std::string& checkpoint, int threads, std::string_view backend = {});

    const run_request& request() const { return request_; }
    /// Settings that hold from now on, for all `steps` updates in all. What is past stays. Throws
    /// base::error (usage) for interventions before it.
    void extend(std::uint64_t steps, const std::vector<intervention>& more);
    /// Makes this copy number `copy` of the run: weights are nudged after as many updates as are
    /// done now, or `after`.
    void nudge(std::uint64_t copy, std::uint64_t after);

    std::uint64_t done() const { return history_.size(); }
    bool finished() const { return diverged() || done() >= request_.steps; }
    /// Whether the last loss or gradient is no number: nothing can follow.
    bool diverged() const;
    const std::vector<step_figures>& history() const { return history_; }
    /// Probes taken so far, in the order of their steps.
    const std::vector<report::record>& probes() const { return probes_; }

    /// The next update, its gradient probed first where the request says so. With `dump`, writes
    /// the tensors of the step to that file.
    void step(const std::string& dump = {});

    /// Measures the loss of text that is held out, under the settings of the next update.
    void evaluate();
    /// That loss; none before, and where no text is held out.
    const std::optional<double>& held_out_loss() const { return held_out_loss_; }

    /// Writes a checkpoint under a temporary name and renames it. Throws base::error (output).
    void save(const std::string& path) const;

    const std::vector<float>& values() const { return values_; }
    const model& network() const { return *model_; }

  private:
    /// Everything but parameters, unless they are to come from a file.
    struct unfilled {
        bool fresh;
    };
    training(unfilled how, const run_request& request, int threads, std::string_view backend);
    void read_initial_values();
    const precision& precision_now();
    void apply_nudge();
    void clip(double norm);
    report::record take_probe(const precision& how);
    void write_dump(const std::string& path, const precision& how);

    run_request request_;
    machine on_;
    std::unique_ptr<model> model_;
    std::vector<float> values_, gradients_;
    moments moments_;
    std::vector<step_figures> history_;
    std::vector<report::record> probes_;
    // The precision of the next step, once it is known, and of how many interventions.
    std::optional<precision> how_;
    std::optional<double> held_out_loss_;
    std::size_t how_many_ = 0;
};

/// The file that a run keeps its latest state in, inside of its folder.
inline constexpr std::string_view checkpoint_name = "checkpoint.safetensors";

}  // namespace mx::lab
