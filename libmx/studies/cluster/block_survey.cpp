// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/cluster/block_survey.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>

#include "libmx/analysis/recipe_totals.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/engine/prologue.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/studies/cluster/block_tally.hpp"

namespace mx::cluster {
namespace {

// Tallies at work at a time: they hold tens of kilobytes each.
constexpr std::size_t jobs_at_once = 256;

// What every job of a recipe has in common.
struct prepared_recipe {
    codec::block_params params;
    bool needs_facts;
    metrics::totals empty;
    survey_recipe known;

    explicit prepared_recipe(const codec::recipe& r)
        : params(codec::params_of(r)),
          needs_facts(codec::needs_tensor_facts(r)),
          empty(analysis::empty_totals(r)),
          known(r) {}
};

// One tensor under one recipe.
struct job {
    std::size_t tensor;  // of the batch
    std::size_t recipe;
    block::grid grid;
    engine::preparation how;
    std::unique_ptr<codec::block_params> own_params;  // where the tensor's facts enter
    std::mutex guard;
    block_tally tally;
};

// The scratch of one thread.
struct workspace {
    explicit workspace(const engine::run_control& control) : quantizer(control) {}
    engine::panel_quantizer quantizer;
    base::aligned_buffer<float> prepared;
    std::vector<std::uint8_t> codes;
};

class survey_run {
  public:
    survey_run(const std::vector<engine::tensor_ref>& tensors,
               const analysis::analysis_request& request, const engine::run_control& control)
        : tensors_(tensors), recipes_(request.recipes), request_(request), control_(control) {
        for (const codec::recipe& r : recipes_) prepared_.emplace_back(r);
        for (int i = 0; i < base::thread_count(control.threads); ++i) {
            spaces_.push_back(std::make_unique<workspace>(control));
        }
        for (const engine::tensor_ref& t : tensors)
            all_work_ += t.info().elements * recipes_.size();
    }

    std::vector<block_survey> run() {
        const std::size_t step =
            std::max<std::size_t>(1, jobs_at_once / std::max<std::size_t>(1, recipes_.size()));
        for (std::size_t first = 0; first < tensors_.size();) {
            std::size_t count = std::min(step, tensors_.size() - first);
            if (needs_prologue()) count = engine::prologue_share(tensors_, first, count, control_);
            run_batch(first, count);
            first += count;
        }
        return std::move(surveys_);
    }

  private:
    bool needs_prologue() const {
        return std::any_of(prepared_.begin(), prepared_.end(),
                           [](const prepared_recipe& r) { return r.needs_facts; });
    }

    engine::run_control batch_control() {
        engine::run_control c = control_;
        if (control_.on_progress) {
            c.on_progress = [this](const engine::progress& p) {
                control_.on_progress({finished_ + p.done, all_work_});
            };
        }
        return c;
    }

    void run_batch(std::size_t first, std::size_t count) {
        batch b;
        b.tensors.assign(tensors_.begin() + static_cast<std::ptrdiff_t>(first),
                         tensors_.begin() + static_cast<std::ptrdiff_t>(first + count));
        for (std::size_t t = 0; t < count; ++t) plan_tensor(b, t);
        if (needs_prologue()) find_facts(b);
        engine::sweep(
            b.tensors, b.passes, batch_control(), engine::panel_form::stored,
            [&](const engine::loaded_panel& p) { work(b, p); }, b.before.kept);
        for (const std::unique_ptr<job>& j : b.jobs) {
            const prepared_recipe& r = prepared_[j->recipe];
            block_survey s = j->tally.finish(r.known, r.empty);
            s.tensor = first + j->tensor;
            s.recipe = j->recipe;
            surveys_.push_back(std::move(s));
            finished_ += b.tensors[j->tensor].info().elements;
        }
    }

    // Some tensors of the run, with their jobs.
    struct batch {
        std::vector<engine::tensor_ref> tensors;
        engine::prologue before;
        std::vector<std::unique_ptr<job>> jobs;
        std::vector<engine::pass> passes;
    };

    void plan_tensor(batch& b, std::size_t t) {
        const io::tensor_info& info = b.tensors[t].info();
        std::vector<engine::grid_job> grids;
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            std::string reason;
            const std::optional<engine::geometry> layout =
                engine::lay_out(info.shape, recipes_[r], reason);
            if (!layout) continue;
            auto j = std::make_unique<job>();
            j->tensor = t;
            j->recipe = r;
            j->grid = layout->grid;
            j->how = analysis::preparation_of(request_, info, recipes_[r], 1);
            if (layout->grid.over.elements() != 0) grids.push_back({b.jobs.size(), layout->grid});
            b.jobs.push_back(std::move(j));
        }
        for (engine::pass& p : engine::plan_passes(t, grids)) b.passes.push_back(std::move(p));
    }

    // The pass that goes first, and what follows from it for the jobs that need it.
    void find_facts(batch& b) {
        std::vector<std::vector<engine::facts_wanted>> wanted(b.tensors.size());
        for (const std::unique_ptr<job>& j : b.jobs) {
            if (prepared_[j->recipe].needs_facts) wanted[j->tensor].push_back({j->how, j->grid});
        }
        b.before = engine::run_prologue(b.tensors, wanted, control_);
        std::vector<std::size_t> next(b.tensors.size());
        for (const std::unique_ptr<job>& j : b.jobs) {
            if (!prepared_[j->recipe].needs_facts) continue;
            j->own_params = std::make_unique<codec::block_params>(codec::params_of(
                recipes_[j->recipe], b.before.facts[j->tensor][next[j->tensor]++]));
        }
    }

    void work(batch& b, const engine::loaded_panel& p) {
        workspace& space = *spaces_[static_cast<std::size_t>(p.thread)];
        const std::uint64_t id = base::tensor_id(b.tensors[p.of->tensor].info().name);
        for (const engine::grid_job& g : p.of->jobs) {
            job& j = *b.jobs[g.job];
            const auto local = std::make_unique<block_tally>();
            const codec::stored_values values =
                j.how.nothing() ? p.values
                                : engine::prepare(j.how, j.grid, p.where, p.values, space.prepared);
            survey_panel(j, p.where, values, id, space, *local);
            const std::lock_guard lock(j.guard);
            j.tally.merge(*local);
        }
    }

    void survey_panel(const job& j, const engine::panel& where, const codec::stored_values& values,
                      std::uint64_t tensor_id, workspace& space, block_tally& to) const {
        const prepared_recipe& r = prepared_[j.recipe];
        const codec::block_params& params = j.own_params ? *j.own_params : r.params;
        // Vector kernels leave the full statistics of blocks to the reference; where extremes tell
        // which blocks need them, these alone are looked at.
        const bool quick = r.known.magnitudes_decide();
        const codec::recipe_request request{
            &params, quick ? codec::detail::codes : codec::detail::stats, false, false, true};
        space.quantizer.run(
            j.grid, where, values, tensor_id, {&request, 1},
            [&](const engine::quantized_segment& s) {
                const codec::segment_result& result = s.by_recipe.front();
                const codec::block_results& d = result.of_blocks;
                to.add(*result.stats);
                for (std::size_t b = 0; b < d.blocks; ++b) {
                    const std::uint64_t index = s.index_of(b);
                    if (quick &&
                        to.add_sound({index, d.amax[b], d.x_min[b], d.x_max[b], d.scale_code[b]},
                                     r.known)) {
                        continue;
                    }
                    const codec::block_extent extent = codec::extent_of(s.place, b);
                    const std::span x(d.inputs + b * d.stride, extent.size());
                    if (!quick) {
                        to.add({index, x, std::span(d.codes + b * d.stride, extent.size()),
                                d.stats[b]},
                               r.known, params);
                        continue;
                    }
                    space.codes.resize(extent.size());
                    const block::block_stats stats = codec::quantize_block(
                        params, x, codec::place_of(s.place, extent), space.codes);
                    to.add({index, x, space.codes, stats}, r.known, params);
                }
            });
    }

    const std::vector<engine::tensor_ref>& tensors_;
    const std::vector<codec::recipe>& recipes_;
    const analysis::analysis_request& request_;
    const engine::run_control& control_;
    std::vector<prepared_recipe> prepared_;
    std::vector<std::unique_ptr<workspace>> spaces_;  // by thread
    std::uint64_t all_work_ = 0, finished_ = 0;
    std::vector<block_survey> surveys_;
};

}  // namespace

std::vector<block_survey> survey_blocks(const std::vector<engine::tensor_ref>& tensors,
                                        const analysis::analysis_request& request,
                                        const engine::run_control& control) {
    return survey_run(tensors, request, control).run();
}

}  // namespace mx::cluster
