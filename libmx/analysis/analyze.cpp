// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/analyze.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <utility>

#include "libmx/analysis/block_table.hpp"
#include "libmx/analysis/panel_worker.hpp"
#include "libmx/analysis/recipe_totals.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/prologue.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/metrics.hpp"

namespace mx::analysis {
namespace {

// One tensor under one recipe and factor.
struct job {
    std::size_t tensor;
    std::size_t recipe;
    std::size_t phase;  // index of the factor
    block::grid grid;
    engine::preparation how;
    std::size_t first_array = 0;                      // of the block table
    std::uint64_t passes = 1;                         // over the tensor's data
    std::unique_ptr<codec::block_params> own_params;  // where the tensor's facts enter
    shared_totals sums;
    shared_scale_pairs* scales = nullptr;  // of the tensor, where the recipe is in a scale group
    std::size_t scales_member = 0;
};

// What every job of a recipe has in common.
struct prepared_recipe {
    codec::block_params params;
    bool needs_facts;
    std::shared_ptr<const named_recipe> named;
    metrics::totals empty;  // totals with the recipe's facts filled in
};

prepared_recipe prepare(const codec::recipe& r) {
    return {codec::params_of(r), codec::needs_tensor_facts(r),
            std::make_shared<named_recipe>(named_recipe{codec::to_string(r), r}), empty_totals(r)};
}

bool wanted(metrics::when collected, const analysis_request& request) {
    switch (collected) {
        case metrics::when::decompose:
            return request.decompose;
        case metrics::when::histograms:
            return request.histograms;
        case metrics::when::always:
            break;
    }
    return true;
}

std::shared_ptr<const tensor_identity> identity_of(const io::tensor_info& info,
                                                   std::string_view role) {
    tensor_identity of{info.file,         info.name,  std::string(tensor::row_of(info.type).name),
                       std::string(role), info.shape, {}};
    if (const auto place = engine::layer_of(info.name)) {
        of.layer = static_cast<std::int64_t>(place->layer);
    }
    return std::make_shared<tensor_identity>(std::move(of));
}

result finish(const job& j, const analysis_request& request) {
    const metrics::totals& t = j.sums.totals;
    result r;
    static_cast<metrics::row&>(r) = metrics::row_of(t);
    if (request.factors.size() > 1) r.phase = static_cast<std::int64_t>(j.phase);
    r.elements = t.count.elements;
    r.blocks = t.block.blocks;
    r.nan = t.count.nan;
    r.inf = t.count.inf;
    r.poisoned = t.count.poisoned;
    // How often the tensor was read for it, and the tensor scale that the first pass was for.
    r.passes = j.passes;
    if (j.own_params) r.tensor_scale = double{j.own_params->tensor.decode};
    for (const metrics::metric& m : metrics::all()) {
        if (m.finish != nullptr && wanted(m.collected, request)) put(r, m.name, m.finish(t));
    }
    return r;
}

// A group name of its own for every tensor, also when two files hold the same name.
std::string unique_group(std::set<std::string>& used, const std::string& name) {
    std::string candidate = name;
    for (int n = 2; !used.insert(candidate).second; ++n) {
        candidate = name + "#" + std::to_string(n);
    }
    return candidate;
}

// Jobs worked on at a time: what they hold (kilobytes of exact sums, tens of kilobytes with
// histograms) must not grow with the number of tensors.
constexpr std::size_t jobs_at_once = 4096;
constexpr std::size_t histogram_jobs_at_once = 256;

// Progress in elements of the files, whatever the number of recipes and batches.
class batch_progress {
  public:
    batch_progress(const engine::run_control& control, std::uint64_t elements,
                   std::uint64_t recipes)
        : control_(control), elements_(elements), recipes_(std::max<std::uint64_t>(1, recipes)) {}

    engine::run_control for_batch() {
        engine::run_control c = control_;
        if (control_.on_progress) {
            c.on_progress = [this](const engine::progress& p) {
                control_.on_progress({(finished_ + p.done) / recipes_, elements_});
            };
        }
        return c;
    }
    void finish_batch(std::uint64_t work) { finished_ += work; }

  private:
    const engine::run_control& control_;
    std::uint64_t elements_;
    std::uint64_t recipes_;
    std::uint64_t finished_ = 0;
};

class analysis_run {
  public:
    analysis_run(const std::vector<engine::tensor_ref>& tensors, const analysis_request& request)
        : request_(request) {
        tensors_ = engine::numeric_only(tensors, result_.skipped);
        for (const codec::recipe& r : request.recipes) recipes_.push_back(prepare(r));
        for (const std::vector<std::size_t>& group : request.scale_groups) {
            result_.scale_differences.emplace_back(group.size());
        }
        if (request.distributions) result_.sums = distributions(request.recipes);
        if (!request.blocks_path.empty()) plan_table();
    }

    analysis run(const engine::run_control& control) {
        panel_target_ = engine::panel_target_of(control.chosen_backend());
        const std::size_t at_once = counts_bins() ? histogram_jobs_at_once : jobs_at_once;
        const std::size_t step =
            std::max<std::size_t>(1, at_once / std::max<std::size_t>(1, variants()));
        std::uint64_t elements = 0;
        for (const engine::tensor_ref& t : tensors_) elements += t.info().elements;
        batch_progress report(control, elements, variants());
        for (int i = 0; i < base::thread_count(control.threads); ++i) {
            workers_.push_back(std::make_unique<panel_worker>(control));
        }
        for (std::size_t first = 0; first < tensors_.size();) {
            std::size_t count = std::min(step, tensors_.size() - first);
            if (needs_prologue()) count = engine::prologue_share(tensors_, first, count, control);
            run_batch(first, count, report);
            first += count;
        }
        if (table_ && has_elements(result_.results)) table_->commit();
        return std::move(result_);
    }

  private:
    // Results per tensor.
    std::size_t variants() const { return recipes_.size() * request_.factors.size(); }

    // Whether every job has histograms.
    bool counts_bins() const { return request_.histograms || request_.distributions; }

    bool needs_prologue() const {
        return std::any_of(recipes_.begin(), recipes_.end(),
                           [](const prepared_recipe& r) { return r.needs_facts; });
    }

    // Every array of the block table, in the order of tensors, recipes, factors and columns.
    void plan_table() {
        std::vector<io::planned_array> arrays;
        std::set<std::string> groups;
        for (const engine::tensor_ref& t : tensors_) {
            const std::string group = unique_group(groups, t.info().name);
            first_array_.push_back(arrays.size());
            for (std::size_t r = 0; r < recipes_.size(); ++r) {
                std::string reason;
                const auto layout = engine::lay_out(t.info().shape, request_.recipes[r], reason);
                if (!layout) continue;
                for (std::size_t phase = 0; phase < request_.factors.size(); ++phase) {
                    std::string name = group + "/" + recipes_[r].named->name;
                    if (request_.factors.size() > 1) name += "/phase" + std::to_string(phase);
                    for (io::planned_array& a : block_arrays(name, layout->grid_shape)) {
                        arrays.push_back(std::move(a));
                    }
                }
            }
        }
        table_ = io::create_hdf5(request_.blocks_path, arrays, {{"schema", "mx.blocks/1"}});
    }

    void run_batch(std::size_t first, std::size_t count, batch_progress& report) {
        batch b;
        b.tensors.assign(tensors_.begin() + static_cast<std::ptrdiff_t>(first),
                         tensors_.begin() + static_cast<std::ptrdiff_t>(first + count));
        b.inexact = std::vector<std::atomic<std::uint64_t>>(count);
        for (std::size_t t = 0; t < count; ++t) {
            plan_tensor(b, t, table_ ? first_array_[first + t] : 0);
        }
        if (needs_prologue()) find_facts(b, report.for_batch());
        engine::sweep(
            b.tensors, b.passes, report.for_batch(), engine::panel_form::stored,
            [&](const engine::loaded_panel& p) { work(b, p); }, b.before.kept);
        std::uint64_t done = 0;
        std::vector<std::shared_ptr<const tensor_identity>> identities(count);
        for (const std::unique_ptr<job>& j : b.jobs) {
            const io::tensor_info& info = b.tensors[j->tensor].info();
            std::shared_ptr<const tensor_identity>& of = identities[j->tensor];
            if (!of) of = identity_of(info, request_.roles.role_of(info));
            j->sums.totals.distribution = j->sums.histograms.get();
            result r = finish(*j, request_);
            r.of = of;
            r.under = recipes_[j->recipe].named;
            r.inexact_inputs = b.inexact[j->tensor];
            result_.results.push_back(std::move(r));
            if (request_.distributions && j->phase == 0) {
                result_.sums.add(info, of->role, j->recipe, j->sums.totals);
            }
            done += info.elements;
        }
        for (std::size_t i = 0; i < b.scales.size(); ++i) {
            result_.scale_differences[i % request_.scale_groups.size()].merge(b.scales[i]->pairs);
        }
        report.finish_batch(done);
    }

    // Some tensors of the run, with their jobs.
    struct batch {
        std::vector<engine::tensor_ref> tensors;
        engine::prologue before;
        std::vector<std::unique_ptr<job>> jobs;
        std::vector<engine::pass> passes;
        std::vector<bool> first_pass;  // of its tensor
        std::vector<std::atomic<std::uint64_t>> inexact;
        std::vector<std::unique_ptr<shared_scale_pairs>> scales;  // by tensor and scale group
    };

    // Where the scale bytes of a job are compared.
    void join_scale_group(const batch& b, job& j) const {
        const std::size_t groups = request_.scale_groups.size();
        for (std::size_t g = 0; g < groups; ++g) {
            const std::vector<std::size_t>& group = request_.scale_groups[g];
            const auto at = std::find(group.begin(), group.end(), j.recipe);
            if (at == group.end()) continue;
            j.scales = b.scales[j.tensor * groups + g].get();
            j.scales_member = static_cast<std::size_t>(at - group.begin());
            return;
        }
    }

    void plan_tensor(batch& b, std::size_t t, std::size_t next_array) {
        const io::tensor_info& info = b.tensors[t].info();
        for (const std::vector<std::size_t>& group : request_.scale_groups) {
            b.scales.push_back(std::make_unique<shared_scale_pairs>(group.size()));
        }
        std::vector<engine::grid_job> grids;
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            std::string reason;
            std::optional<engine::geometry> layout =
                engine::lay_out(info.shape, request_.recipes[r], reason);
            if (!layout) {
                result_.skipped.push_back({info.file, info.name, recipes_[r].named->name, reason});
                continue;
            }
            for (std::size_t phase = 0; phase < request_.factors.size(); ++phase) {
                auto j = std::make_unique<job>();
                j->tensor = t;
                j->recipe = r;
                j->phase = phase;
                j->grid = layout->grid;
                j->how =
                    preparation_of(request_, info, request_.recipes[r], request_.factors[phase]);
                j->first_array = next_array;
                if (phase == 0) join_scale_group(b, *j);
                next_array += block_array_count;
                j->sums.totals = recipes_[r].empty;
                j->sums.decompose = request_.decompose;
                if (counts_bins()) {
                    j->sums.histograms = std::make_unique<metrics::histograms>();
                }
                if (info.elements != 0) grids.push_back({b.jobs.size(), layout->grid});
                b.jobs.push_back(std::move(j));
            }
        }
        for (engine::pass& p : engine::plan_passes(t, grids, panel_target_)) {
            b.first_pass.push_back(b.passes.empty() || b.passes.back().tensor != t);
            b.passes.push_back(std::move(p));
        }
    }

    // The pass that goes first, and what follows from it for the jobs that need it.
    void find_facts(batch& b, const engine::run_control& control) {
        std::vector<std::vector<engine::facts_wanted>> wanted(b.tensors.size());
        for (const std::unique_ptr<job>& j : b.jobs) {
            if (recipes_[j->recipe].needs_facts) wanted[j->tensor].push_back({j->how, j->grid});
        }
        b.before = engine::run_prologue(b.tensors, wanted, control);
        for (std::size_t t = 0; t < b.tensors.size(); ++t) b.inexact[t] = b.before.inexact[t];
        std::vector<std::size_t> next(b.tensors.size());
        for (const std::unique_ptr<job>& j : b.jobs) {
            if (!recipes_[j->recipe].needs_facts) continue;
            const std::size_t t = j->tensor;
            j->own_params = std::make_unique<codec::block_params>(
                codec::params_of(request_.recipes[j->recipe], b.before.facts[t][next[t]++]));
            // Zero elements are kept without a trace.
            if (b.tensors[t].info().elements != b.before.kept[t].size()) j->passes = 2;
        }
    }

    void work(batch& b, const engine::loaded_panel& p) {
        // Every pass of a tensor reads all of it; the first one counts.
        if (b.first_pass[p.pass_index]) b.inexact[p.of->tensor] += p.inexact;
        std::vector<panel_job> jobs;
        std::vector<std::unique_ptr<block_rows>> rows;
        for (const engine::grid_job& g : p.of->jobs) {
            job& j = *b.jobs[g.job];
            if (table_) rows.push_back(std::make_unique<block_rows>(*table_, j.first_array));
            const codec::block_params* params =
                j.own_params ? j.own_params.get() : &recipes_[j.recipe].params;
            jobs.push_back({params, j.grid, &j.sums, table_ ? rows.back().get() : nullptr, j.how});
            jobs.back().scales = j.scales;
            jobs.back().scales_member = j.scales_member;
        }
        const std::string& name = b.tensors[p.of->tensor].info().name;
        workers_[static_cast<std::size_t>(p.thread)]->run(p.where, p.values, base::tensor_id(name),
                                                          jobs);
        for (const auto& r : rows) r->flush();
    }

    const analysis_request& request_;
    std::vector<engine::tensor_ref> tensors_;
    std::vector<prepared_recipe> recipes_;
    std::vector<std::unique_ptr<panel_worker>> workers_;  // by thread
    std::uint64_t panel_target_ = engine::panel_target;
    std::unique_ptr<io::array_writer> table_;
    std::vector<std::size_t> first_array_;  // of the block table, by tensor
    analysis result_;
};

}  // namespace

engine::preparation preparation_of(const analysis_request& request, const io::tensor_info& info,
                                   const codec::recipe& r, float factor) {
    const bool is_norm = request.norm_bias != 0 && request.roles.role_of(info) == "norm";
    return {is_norm ? request.norm_bias : 0.0f, factor, r.rotate};
}

analysis analyze(const std::vector<engine::tensor_ref>& tensors, const analysis_request& request,
                 const engine::run_control& control) {
    return analysis_run(tensors, request).run(control);
}

}  // namespace mx::analysis
