// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/diff/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/prologue.hpp"
#include "libmx/studies/diff/collect.hpp"
#include "libmx/studies/diff/compare_panels.hpp"
#include "libmx/studies/diff/match.hpp"

namespace mx::diff {
namespace {

// Exact sums held at a time, of half a kilobyte each.
constexpr std::size_t sums_at_once = 16384;
constexpr std::size_t sums_of_values = 5;

constexpr std::string_view norm_role = "norm";

class diff_run {
  public:
    diff_run(std::span<const io::reader* const> dumps,
             const std::vector<engine::tensor_ref>& chosen, const diff_request& request,
             const engine::run_control& control)
        : count_(dumps.size()),
          request_(request),
          control_(control),
          collected_(request, dumps.size()) {
        matched_dumps found = match_dumps(dumps, request.paths, chosen);
        tensors_ = std::move(found.tensors);
        result_.left_out = std::move(found.left_out);
        for (const codec::recipe& r : request.recipes) {
            zones_.push_back(codec::clamp_zone_of(r));
        }
        for (int i = 0; i < base::thread_count(control.threads); ++i) {
            workers_.push_back(std::make_unique<panel_comparer>(control, count_));
        }
        for (const matched_tensor& t : tensors_) result_.elements += t.info().elements;
        result_.tensors = tensors_.size();
        result_.identical = !tensors_.empty();
    }

    diff_result run() {
        const std::size_t sums = sums_of_values * (count_ - 1) + request_.recipes.size() * count_;
        const std::size_t step = std::max<std::size_t>(1, sums_at_once / sums);
        for (std::size_t first = 0; first < tensors_.size(); first += step) {
            run_batch(first, std::min(step, tensors_.size() - first));
        }
        collected_.finish(result_);
        return std::move(result_);
    }

  private:
    // Some tensors of the run.
    struct batch {
        std::vector<std::vector<engine::tensor_ref>> in;  // by dump and tensor
        std::vector<std::unique_ptr<tensor_job>> jobs;
        std::vector<engine::pass> passes;
        std::vector<std::unique_ptr<engine::panel_reader>> readers;  // of the dumps but the first
    };

    void run_batch(std::size_t first, std::size_t count) {
        batch b;
        b.in.resize(count_);
        std::uint64_t elements = 0;
        for (std::size_t t = 0; t < count; ++t) {
            const matched_tensor& m = tensors_[first + t];
            for (std::size_t d = 0; d < count_; ++d) b.in[d].push_back(m.in[d]);
            plan_tensor(b, t, m);
            elements += m.info().elements;
        }
        find_facts(b);
        for (std::size_t d = 1; d < count_; ++d) {
            b.readers.push_back(std::make_unique<engine::panel_reader>(b.in[d], b.passes));
        }
        engine::run_control steered = control_;
        if (control_.on_progress) {
            steered.on_progress = [&, this](const engine::progress& p) {
                const double part = static_cast<double>(p.done) / static_cast<double>(p.total);
                const double done = part * static_cast<double>(elements);
                control_.on_progress(
                    {finished_ + static_cast<std::uint64_t>(done), result_.elements});
            };
        }
        engine::sweep(b.in.front(), b.passes, steered, engine::panel_form::widened,
                      [&](const engine::loaded_panel& p) {
                          const std::string& name = b.in.front()[p.of->tensor].info().name;
                          workers_[static_cast<std::size_t>(p.thread)]->run(
                              *b.jobs[p.of->tensor], base::tensor_id(name), p, b.readers);
                      });
        finished_ += elements;
        for (std::size_t t = 0; t < count; ++t) report(b, first, t);
    }

    void plan_tensor(batch& b, std::size_t t, const matched_tensor& m) {
        const io::tensor_info& info = m.info();
        auto job = std::make_unique<tensor_job>();
        job->role = request_.roles.role_of(info);
        if (job->role == norm_role) job->bias = request_.norm_bias;
        job->values.resize(count_ - 1);
        std::string reason;
        const engine::geometry rows = engine::lay_out(info.shape, codec::recipe{}, reason).value();
        std::vector<engine::grid_job> grids{{values_job, rows.grid}};
        for (std::size_t r = 0; r < request_.recipes.size(); ++r) {
            const codec::recipe& recipe = request_.recipes[r];
            const auto layout = engine::lay_out(info.shape, recipe, reason);
            job->recipes.push_back(nullptr);
            if (!layout) {
                result_.left_out.push_back(
                    {info.file, info.name, codec::to_string(recipe), reason});
                continue;
            }
            auto under = std::make_unique<recipe_job>();
            under->recipe = r;
            under->grid = layout->grid;
            under->rotate = recipe.rotate;
            under->scales_have_codes = codec::scales_have_codes(recipe);
            if (job->role == norm_role) under->zone = zones_[r];
            if (!codec::needs_tensor_facts(recipe)) {
                under->params.push_back(codec::params_of(recipe));
            }
            under->codes.figures = code_figures(count_);
            grids.push_back({r, layout->grid});
            job->recipes.back() = std::move(under);
        }
        for (engine::pass& p : engine::plan_passes(t, grids)) b.passes.push_back(std::move(p));
        b.jobs.push_back(std::move(job));
    }

    // Where a recipe needs facts of the whole tensor, they are those of each dump.
    void find_facts(batch& b) {
        std::vector<std::vector<engine::facts_wanted>> wanted(b.jobs.size());
        std::vector<std::vector<recipe_job*>> wanting(b.jobs.size());
        bool any = false;
        for (std::size_t t = 0; t < b.jobs.size(); ++t) {
            for (const std::unique_ptr<recipe_job>& j : b.jobs[t]->recipes) {
                if (!j || !j->params.empty()) continue;
                wanted[t].push_back({engine::preparation{b.jobs[t]->bias, 1, j->rotate}, j->grid});
                wanting[t].push_back(j.get());
                any = true;
            }
        }
        if (!any) return;
        engine::run_control control = control_;
        control.kept_elements = 0;
        for (std::size_t d = 0; d < count_; ++d) {
            const engine::prologue before = engine::run_prologue(b.in[d], wanted, control);
            for (std::size_t t = 0; t < b.jobs.size(); ++t) {
                for (std::size_t i = 0; i < wanting[t].size(); ++i) {
                    recipe_job& j = *wanting[t][i];
                    j.params.push_back(
                        codec::params_of(request_.recipes[j.recipe], before.facts[t][i]));
                }
            }
        }
    }

    void report(batch& b, std::size_t first, std::size_t t) {
        const tensor_job& job = *b.jobs[t];
        for (const value_figures& v : job.values) {
            result_.identical = result_.identical && v.changed == 0;
        }
        for (const std::unique_ptr<recipe_job>& j : job.recipes) {
            if (!j) continue;
            compared_under c{&tensors_[first + t], job.role, j->recipe, {}, {}};
            if (codec::needs_tensor_facts(request_.recipes[j->recipe])) {
                for (const codec::block_params& p : j->params) {
                    c.tensor_scales.push_back(double{p.tensor.decode});
                }
            }
            c.figures.values = job.values;
            c.figures.codes = std::move(j->codes.figures);
            collected_.add(c);
        }
    }

    const std::size_t count_;
    const diff_request& request_;
    const engine::run_control& control_;
    std::vector<matched_tensor> tensors_;
    std::vector<codec::clamp_zone> zones_;                  // by recipe
    std::vector<std::unique_ptr<panel_comparer>> workers_;  // by thread
    std::uint64_t finished_ = 0;
    diff_collector collected_;
    diff_result result_;
};

void check(std::size_t dumps, const diff_request& request) {
    const auto refuse = [](const std::string& message) {
        throw base::error(base::error_kind::usage, message);
    };
    if (dumps < 2) refuse("one dump has nothing to be compared with; give two or more FILEs");
    if (dumps > most_dumps) {
        refuse(fmt::format("{} dumps were given; at most {} are compared at a time", dumps,
                           most_dumps));
    }
    if (request.paths.size() != dumps || request.labels.text.size() != dumps) {
        refuse("give one path and one label for each dump");
    }
}

}  // namespace

diff_result diff(std::span<const io::reader* const> dumps,
                 const std::vector<engine::tensor_ref>& chosen, const diff_request& request,
                 const engine::run_control& control) {
    check(dumps.size(), request);
    return diff_run(dumps, chosen, request, control).run();
}

}  // namespace mx::diff
