// SPDX-License-Identifier: Apache-2.0
// One run over tensors under recipes: batches, facts of whole tensors, reading, preparing,
// quantizing, progress and cancelling. What is done with the results is up to visitors, of which
// several share a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "libmx/base/tally_text.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/engine/preparation.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/share.hpp"
#include "libmx/engine/skip.hpp"

namespace mx::engine {

struct run_request {
    std::vector<codec::recipe> recipes;
    role_finder roles;  ///< say which tensors are norms, and the member `role` of results
    /// Added to the values of tensors whose role is norm, in float32, before anything else: 1 for
    /// models that store gamma - 1.
    float norm_bias = 0;
    /// What values are multiplied by, in float32, before a recipe's transform. One job per tensor,
    /// recipe and factor.
    std::vector<float> factors = {1.0F};
    /// Where the run is one in parts; null: all of it.
    std::shared_ptr<run_share> share;
};

/// What happens to the values of a tensor before they are quantized to `r`.
preparation preparation_of(const run_request& request, const io::tensor_info& info,
                           const codec::recipe& r, float factor = 1);

/// One tensor under one recipe and factor.
struct run_job {
    std::size_t tensor = 0;             ///< its index among the tensors of the run
    std::size_t recipe = 0, phase = 0;  ///< indices of recipe and factor
    geometry layout;
    preparation how;
    std::uint64_t passes = 1;  ///< over the tensor's data
    /// By model: of the recipe, with the tensor's facts where they enter.
    std::vector<std::shared_ptr<const codec::block_params>> params;
};

/// Tensors that are worked on at a time.
struct run_batch {
    std::size_t first = 0;               ///< index of the first one in the run
    std::vector<tensor_ref> tensors;     ///< of the first model
    std::vector<run_job> jobs;           ///< tensors in order, then recipes, then factors
    std::vector<std::uint64_t> inexact;  ///< by tensor: values that widening rounded, at the end

    const io::tensor_info& info(const run_job& j) const { return tensors[j.tensor - first].info(); }
};

/// A panel of a tensor, with the jobs that share its pass.
struct run_panel {
    const run_batch& batch;
    std::size_t tensor;  ///< its index among the tensors of the run
    const panel& where;
    std::span<const std::size_t> jobs;  ///< indices among those of the batch
    /// For visitors that want values, once per element of a tensor, else null: the grid of rows
    /// whose whole segments the panel holds, and `values` by model, float32 with the bias added.
    const block::grid* rows;
    std::span<const codec::stored_values> values;

    const run_job& job(std::size_t i) const { return batch.jobs[jobs[i]]; }
};

/// What a study makes of one panel, on one thread.
class panel_visitor {
  public:
    virtual ~panel_visitor() = default;
    /// A segment under the jobs `members` (indices among those of the panel), whose results are in
    /// s.by_recipe. Models come in order for each segment.
    virtual void segment(const quantized_segment& s, std::span<const std::size_t> members) = 0;
    /// The panel is done: what was found goes to the study.
    virtual void end() = 0;
};

/// A study.
class visitor {
  public:
    virtual ~visitor() = default;
    /// Tensors whose sums fit in memory at a time.
    virtual std::size_t tensors_at_once() const { return std::numeric_limits<std::size_t>::max(); }
    /// What is asked of the segments of a job; the params are filled in.
    virtual codec::recipe_request wanted(const run_job&) const { return {}; }
    /// The jobs of a batch are laid out, and facts of its tensors are known.
    virtual void begin(const run_batch&) {}
    /// Threads call this at once. Null: the panel does not matter.
    virtual std::unique_ptr<panel_visitor> visit(const run_panel&) = 0;
    /// Whether the totals of a job do: its tensor may then be counted (tensor_counts.hpp), and
    /// visit() is not told of it.
    virtual bool takes_totals(const run_job&) const { return false; }
    /// What was counted under a job of the batch, in addition to what segments told. Threads call
    /// this at once, for different jobs.
    virtual void total(const run_batch&, std::size_t /*job*/, const block::segment_stats&) {}
    /// The batch is done. Not called for a tensor that a part has a piece of.
    virtual void end(const run_batch&) {}
    /// Hands over what threads found of a tensor of the batch, apart from its jobs, and of a job:
    /// between begin() and end(), for runs in parts.
    virtual void exchange_tensor(const run_batch&, std::size_t /*tensor*/, base::tally_text&) {}
    virtual void exchange_job(const run_batch&, std::size_t /*job*/, base::tally_text&);
};

struct run_options {
    bool values = false;  ///< visitors want values: see run_panel::rows
    /// False: recipes are run as if nothing were known of a tensor, without the pass that goes
    /// first.
    bool facts = true;
};

/// Where request.share is of a part, that part alone is run, and its sums are added to the share;
/// where it merges, nothing is read.
///
/// Runs numeric tensors under all recipes that fit them, each tensor read once (twice where a
/// recipe needs facts of a large one). `models` hold the same tensors with other values; their
/// panels are read side by side. Returns what was left out: tensors under recipes that do not fit.
/// Nothing that visitors are told depends on threads but the order of panels. Throws base::error.
std::vector<skipped_tensor> run(std::span<const std::vector<tensor_ref>> models,
                                const run_request& request, std::span<visitor* const> visitors,
                                const run_control& control, const run_options& options = {});

/// One model and one visitor.
std::vector<skipped_tensor> run(const std::vector<tensor_ref>& tensors, const run_request& request,
                                visitor& study, const run_control& control);

/// `control` for a part of a run, `part` elements after `done` of `total`: the progress of the part
/// is passed on as that of the whole. `control` outlives it.
run_control part_of(const run_control& control, std::uint64_t done, std::uint64_t part,
                    std::uint64_t total);

}  // namespace mx::engine
