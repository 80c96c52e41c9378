// SPDX-License-Identifier: Apache-2.0
#include "libmx/pipeline/diff/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/pipeline/diff/collect.hpp"
#include "libmx/pipeline/diff/compare_codes.hpp"
#include "libmx/pipeline/diff/compare_values.hpp"
#include "libmx/pipeline/diff/match.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/pipeline/panel_reader.hpp"
#include "libmx/pipeline/prologue.hpp"
#include "libmx/pipeline/sweep.hpp"

namespace mx::pipeline {
namespace {

// Exact sums held at a time, of half a kilobyte each.
constexpr std::size_t sums_at_once = 16384;
constexpr std::size_t sums_of_values = 5;

constexpr std::string_view norm_role = "norm";

// What every tensor has in common under a recipe.
struct prepared_recipe {
    std::vector<quantize::block_params> params;  // one
    bool needs_facts;
    bool scales_have_codes;
    quantize::clamp_zone zone;

    explicit prepared_recipe(const quantize::recipe& r)
        : params{quantize::params_of(r)},
          needs_facts(quantize::needs_tensor_facts(r)),
          scales_have_codes(quantize::scales_have_codes(r)),
          zone(quantize::clamp_zone_of(r)) {}
};

// A tensor under one recipe.
struct recipe_job {
    std::size_t recipe;
    block::grid grid;
    std::vector<quantize::block_params> own_params;  // by dump, where facts of the tensor enter
    shared_codes codes;
};

struct tensor_job {
    std::string_view role;
    float bias = 0;
    std::mutex guard;
    std::vector<value_figures> values;
    std::vector<std::unique_ptr<recipe_job>> recipes;
};

// One thread's.
struct worker {
    code_comparer comparer;
    std::vector<panel_room> rooms;  // by dump
    std::vector<std::span<const float>> x;
    std::vector<quantize::stored_values> dumps;
    std::vector<code_job> jobs;
    std::vector<value_figures> values;

    worker(const quantize::driver& d, std::size_t count)
        : comparer(d), rooms(count), x(count), dumps(count) {}
};

class diff_run {
  public:
    diff_run(std::span<const io::reader* const> dumps, const std::vector<tensor_ref>& chosen,
             const diff_request& request, const run_control& control)
        : count_(dumps.size()),
          request_(request),
          control_(control),
          collected_(request, dumps.size()) {
        matched_dumps found = match_dumps(dumps, request.paths, chosen);
        tensors_ = std::move(found.tensors);
        result_.left_out = std::move(found.left_out);
        for (const quantize::recipe& r : request.recipes) recipes_.emplace_back(r);
        for (int i = 0; i < base::thread_count(control.threads); ++i) {
            workers_.push_back(std::make_unique<worker>(control.chosen_driver(), count_));
        }
        for (const matched_tensor& t : tensors_) result_.elements += t.info().elements;
        result_.tensors = tensors_.size();
        result_.identical = !tensors_.empty();
    }

    diff_result run() {
        const std::size_t sums = sums_of_values * (count_ - 1) + recipes_.size() * count_;
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
        std::vector<std::vector<tensor_ref>> in;  // by dump and tensor
        std::vector<std::unique_ptr<tensor_job>> jobs;
        std::vector<pass> passes;
        std::vector<std::unique_ptr<panel_reader>> readers;  // of the dumps but the first
    };

    // Of the grids of a pass, the one that belongs to no recipe.
    std::size_t values_job() const { return recipes_.size(); }

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
            b.readers.push_back(std::make_unique<panel_reader>(b.in[d], b.passes));
        }
        run_control steered = control_;
        if (control_.on_progress) {
            steered.on_progress = [&, this](const progress& p) {
                const double part = static_cast<double>(p.done) / static_cast<double>(p.total);
                const double done = part * static_cast<double>(elements);
                control_.on_progress(
                    {finished_ + static_cast<std::uint64_t>(done), result_.elements});
            };
        }
        sweep(b.in.front(), b.passes, steered, panel_form::widened,
              [&](const loaded_panel& p) { work(b, p); });
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
        std::vector<grid_job> grids{
            {values_job(), lay_out(info.shape, quantize::recipe{}, reason).value().grid}};
        for (std::size_t r = 0; r < recipes_.size(); ++r) {
            const auto layout = lay_out(info.shape, request_.recipes[r], reason);
            if (!layout) {
                result_.left_out.push_back(
                    {info.file, info.name, quantize::to_string(request_.recipes[r]), reason});
                job->recipes.push_back(nullptr);
                continue;
            }
            auto under = std::make_unique<recipe_job>();
            under->recipe = r;
            under->grid = layout->grid;
            under->codes.figures = code_figures(count_);
            grids.push_back({r, layout->grid});
            job->recipes.push_back(std::move(under));
        }
        for (pass& p : plan_passes(t, grids)) b.passes.push_back(std::move(p));
        b.jobs.push_back(std::move(job));
    }

    // Where a recipe needs facts of the whole tensor, they are those of each dump.
    void find_facts(batch& b) {
        const auto needs = [](const prepared_recipe& r) { return r.needs_facts; };
        if (std::none_of(recipes_.begin(), recipes_.end(), needs)) return;
        run_control control = control_;
        control.kept_elements = 0;
        for (std::size_t d = 0; d < count_; ++d) {
            const prologue before = run_prologue(b.in[d], control);
            for (std::size_t t = 0; t < b.jobs.size(); ++t) {
                for (const std::unique_ptr<recipe_job>& j : b.jobs[t]->recipes) {
                    if (!j || !recipes_[j->recipe].needs_facts) continue;
                    j->own_params.push_back(
                        quantize::params_of(request_.recipes[j->recipe], before.facts[t]));
                }
            }
        }
    }

    // The same panel of every dump, in float32.
    void read(batch& b, const loaded_panel& p, float bias, worker& w) {
        for (std::size_t d = 0; d < count_; ++d) {
            std::vector<float>& x = w.rooms[d].x;
            if (d == 0) {
                x.assign(p.x.begin(), p.x.end());
            } else {
                std::uint64_t inexact = 0;
                b.readers[d - 1]->read(*p.of, p.pass_index, p.where, panel_form::widened,
                                       w.rooms[d], inexact);
            }
            if (bias != 0) {
                for (float& v : x) v += bias;
            }
            w.x[d] = x;
            w.dumps[d] = {tensor::dtype::f32, std::as_bytes(w.x[d]).data(), p.where.cols};
        }
    }

    void work(batch& b, const loaded_panel& p) {
        tensor_job& job = *b.jobs[p.of->tensor];
        worker& w = *workers_[static_cast<std::size_t>(p.thread)];
        read(b, p, job.bias, w);
        w.jobs.clear();
        for (const grid_job& g : p.of->jobs) {
            if (g.job == values_job()) {
                compare_values(job, g.grid, p.where, w);
                continue;
            }
            recipe_job& under = *job.recipes[g.job];
            const prepared_recipe& r = recipes_[g.job];
            code_job c;
            c.params = r.needs_facts ? under.own_params : r.params;
            c.grid = under.grid;
            c.scales_have_codes = r.scales_have_codes;
            if (job.role == norm_role) c.zone = r.zone;
            c.into = &under.codes;
            w.jobs.push_back(c);
        }
        const std::string& name = b.in.front()[p.of->tensor].info().name;
        w.comparer.run(p.where, w.dumps, base::tensor_id(name), w.jobs);
    }

    void compare_values(tensor_job& job, const block::grid& grid, const panel& where, worker& w) {
        w.values.assign(count_ - 1, {});
        for_each_segment(grid, where, [&](const segment_in_panel& s) {
            const std::uint64_t at = (s.batch * where.rows + s.row) * where.cols + s.col;
            for (std::size_t k = 0; k + 1 < count_; ++k) {
                add_values(w.x[k].data() + at, w.x[k + 1].data() + at, s.rows, s.cols, where.cols,
                           w.values[k]);
            }
        });
        const std::lock_guard lock(job.guard);
        for (std::size_t k = 0; k + 1 < count_; ++k) job.values[k].merge(w.values[k]);
    }

    void report(batch& b, std::size_t first, std::size_t t) {
        const tensor_job& job = *b.jobs[t];
        for (const value_figures& v : job.values) {
            result_.identical = result_.identical && v.changed == 0;
        }
        for (const std::unique_ptr<recipe_job>& j : job.recipes) {
            if (!j) continue;
            compared_under c{&tensors_[first + t], job.role, j->recipe, {}, {}};
            for (const quantize::block_params& p : j->own_params) {
                c.tensor_scales.push_back(double{p.tensor.decode});
            }
            c.figures.values = job.values;
            c.figures.codes = std::move(j->codes.figures);
            collected_.add(c);
        }
    }

    const std::size_t count_;
    const diff_request& request_;
    const run_control& control_;
    std::vector<matched_tensor> tensors_;
    std::vector<prepared_recipe> recipes_;
    std::vector<std::unique_ptr<worker>> workers_;  // by thread
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

diff_result diff(std::span<const io::reader* const> dumps, const std::vector<tensor_ref>& chosen,
                 const diff_request& request, const run_control& control) {
    check(dumps.size(), request);
    return diff_run(dumps, chosen, request, control).run();
}

}  // namespace mx::pipeline
