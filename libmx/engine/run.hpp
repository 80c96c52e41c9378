// SPDX-License-Identifier: Apache-2.0
// One run over tensors under recipes: batches, facts of whole tensors, reading, preparing,
// quantizing, progress and cancelling. Visitors receive the results; several can share a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "libmx/base/archive.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/input_transform.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/engine/parts.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/skip.hpp"

namespace mx::engine {

struct run_request {
    std::vector<codec::recipe> recipes;
    role_finder roles;  ///< say which tensors are norms, and the member `role` of results
    /// Added in float32, before anything else, to the values of tensors with role norm: 1 for
    /// models that store gamma - 1.
    float norm_bias = 0;
    /// Factors by which values are multiplied in float32 before a recipe's transform. One job per
    /// tensor, recipe and factor.
    std::vector<float> factors = {1.0F};
    /// The part of a run in parts; null: the whole run.
    std::shared_ptr<partial_run> partial;
};

/// The transform of a tensor's values for `r`.
input_transform input_transform_of(const run_request& request, const io::tensor_info& info,
                                   const codec::recipe& r, float factor = 1);

/// One tensor under one recipe and factor.
struct run_job {
    std::size_t tensor = 0;             ///< its index among the tensors of the run
    std::size_t recipe = 0, phase = 0;  ///< indices of recipe and factor
    geometry layout;
    input_transform how;
    std::uint64_t passes = 1;  ///< over the tensor's data
    /// By model: the recipe's parameters, with the tensor's facts if needed.
    std::vector<std::shared_ptr<const codec::block_params>> params;
};

/// The tensors processed at a time.
struct run_batch {
    std::size_t first = 0;               ///< index of the first one in the run
    std::vector<tensor_ref> tensors;     ///< of the first model
    std::vector<run_job> jobs;           ///< tensors in order, then recipes, then factors
    std::vector<std::uint64_t> inexact;  ///< by tensor: values that widening rounded, at the end

    const io::tensor_info& info(const run_job& j) const { return tensors[j.tensor - first].info(); }
};

/// A panel of a tensor, and the jobs that share its pass.
struct run_panel {
    const run_batch& batch;
    std::size_t tensor;  ///< its index among the tensors of the run
    const panel& where;
    std::span<const std::size_t> jobs;  ///< indices among those of the batch
    /// For visitors that want values, once per element of a tensor, else null: the grid of rows
    /// whose whole segments are in the panel, and `values` by model, float32 with the bias added.
    const block::grid* rows;
    std::span<const codec::stored_values> values;
    /// By job: whether its counts and sums reach visitor::total() and not segments.
    std::span<const std::uint8_t> counted;

    const run_job& job(std::size_t i) const { return batch.jobs[jobs[i]]; }
};

/// Processes one panel for a study, on one thread.
class panel_visitor {
  public:
    virtual ~panel_visitor() = default;
    /// Visits a segment under the jobs `members` (indices among those of the panel); the results
    /// are in s.by_recipe. For each segment, models are in order.
    virtual void segment(const quantized_segment& s, std::span<const std::size_t> members) = 0;
    /// Called when the panel is done: adds its results to the study.
    virtual void end() = 0;
};

/// A study.
class visitor {
  public:
    virtual ~visitor() = default;
    /// The number of tensors whose sums fit in memory at a time.
    virtual std::size_t tensors_at_once() const { return std::numeric_limits<std::size_t>::max(); }
    /// The request for the segments of a job; the params are filled in.
    virtual codec::recipe_request requested(const run_job&) const { return {}; }
    /// Called when the jobs of a batch are laid out, and facts of its tensors are known.
    virtual void begin(const run_batch&) {}
    /// Called concurrently. Null: the panel is not needed.
    virtual std::unique_ptr<panel_visitor> visit(const run_panel&) = 0;
    /// The request for the segments of a job whose tensor is counted (tensor_counts.hpp), so that
    /// counts and sums reach total() (run_panel::counted): `sums` must be false; detail::none if
    /// segments need not be visited. nullopt: the job cannot be counted.
    virtual std::optional<codec::recipe_request> beside_counts(const run_job&) const {
        return std::nullopt;
    }
    /// Receives the counts and sums of a job of the batch, in addition to those of segments. Called
    /// concurrently for different jobs.
    virtual void total(const run_batch&, std::size_t /*job*/, const block::segment_stats&) {}
    /// Called when the batch is done, except for a tensor of which a part has only a range.
    virtual void end(const run_batch&) {}
    /// For runs in parts: returns the results for a tensor of the batch that belong to no job, and
    /// for a job. Called between begin() and end().
    virtual void serialize_tensor(const run_batch&, std::size_t /*tensor*/, base::archive&) {}
    virtual void serialize_job(const run_batch&, std::size_t /*job*/, base::archive&);
};

struct run_options {
    bool values = false;  ///< visitors want values: see run_panel::rows
    /// Facts of all tensors that are already known: there is no amax pass.
    std::optional<codec::tensor_facts> facts{};
};

/// If request.partial is a part, only that part is run, and its sums are added to it. If it
/// merges, nothing is read.
///
/// Runs numeric tensors under all recipes that fit them. Each tensor is read once, or twice if a
/// recipe needs facts of a large one. `models` contain the same tensors with different values;
/// their panels are read in parallel. Returns the skipped tensors and recipes. Except for the order
/// of panels, calls of visitors do not depend on threads. Throws base::error.
std::vector<skipped_tensor> run(std::span<const std::vector<tensor_ref>> models,
                                const run_request& request, std::span<visitor* const> visitors,
                                const run_control& control, const run_options& options = {});

/// One model and one visitor.
std::vector<skipped_tensor> run(const std::vector<tensor_ref>& tensors, const run_request& request,
                                visitor& study, const run_control& control);

/// A `control` for a part of a run: `part` elements after `done` of `total`. Its progress is
/// reported as that of the whole. `control` must outlive it.
run_control part_of(const run_control& control, std::uint64_t done, std::uint64_t part,
                    std::uint64_t total);

}  // namespace mx::engine
