// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "libmx/base/parallel.hpp"
#include "libmx/base/random.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/amax_pass.hpp"
#include "libmx/engine/given_scales.hpp"
#include "libmx/engine/panel_reader.hpp"
#include "libmx/engine/sweep.hpp"
#include "libmx/engine/tensor_counts.hpp"
#include "libmx/io/remote.hpp"

namespace mx::engine {
namespace {

// Index of work on values alone among the jobs of a pass.
constexpr std::size_t values_job = std::numeric_limits<std::size_t>::max();

// Calls `group` for each group of equal members of `all`, in order of first appearance.
template <typename Alike, typename Group>
void for_each_group(std::vector<std::size_t> all, Alike&& alike, Group&& group) {
    while (!all.empty()) {
        const auto others = std::stable_partition(
            all.begin(), all.end(),
            [&, first = all.front()](std::size_t i) { return alike(first, i); });
        group(std::vector<std::size_t>(all.begin(), others));
        all.erase(all.begin(), others);
    }
}

// The buffers of one thread; by model if there are several.
struct workspace {
    workspace(const run_control& control, std::size_t models)
        : quantizer(control), buffers(models), prepared(models) {}

    panel_quantizer quantizer;
    std::vector<panel_buffer> buffers;
    std::deque<base::aligned_buffer<float>> prepared;
    std::vector<codec::stored_values> stored, ready;
    std::vector<codec::recipe_request> requests;
};

// A batch and the run's own data about it.
struct batch_at_work : run_batch {
    std::vector<pass> passes;
    std::vector<bool> first_pass;  // of its tensor
    amax_pass before;
    std::vector<std::unique_ptr<panel_reader>> others;  // for the models after the first
    std::vector<std::atomic<std::uint64_t>> rounded;    // by tensor
    const tensor_range* range = nullptr;  // that is run, if the batch is a single split tensor
    // By job and model, if the recipe needs facts of the tensor.
    std::vector<std::vector<codec::tensor_facts>> facts;
    std::deque<counted_jobs> counted;
    std::vector<counted_jobs*> counted_with;         // by job; null: it is quantized
    std::vector<std::atomic<std::uint64_t>> panels;  // remaining panels by tensor

    // Calls f(jobs [first, end)) for each tensor.
    template <typename F>
    void each_tensor(F&& f) const {
        std::size_t job = 0;
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            std::size_t end = job;
            while (end < jobs.size() && jobs[end].tensor == first + t) ++end;
            f(t, job, end);
            job = end;
        }
    }
};

// Those of the thread's last recipe are kept: making them takes longer than quantizing a small
// array.
std::shared_ptr<const codec::block_params> params_of_thread(const codec::recipe& r) {
    struct last {
        codec::recipe of;
        std::shared_ptr<const codec::block_params> params;
    };
    static thread_local last kept;
    if (kept.params == nullptr || !(kept.of == r)) {
        kept = {r, std::make_shared<codec::block_params>(codec::params_of(r))};
    }
    return kept.params;
}

class tensor_run {
  public:
    tensor_run(std::span<const std::vector<tensor_ref>> models, const run_request& request,
               std::span<visitor* const> visitors, const run_control& control,
               const run_options& options)
        : models_(models),
          request_(request),
          visitors_(visitors),
          control_(control),
          options_(options),
          counts_(control) {
        for (const codec::recipe& r : request.recipes) {
            params_.push_back(options.facts ? std::make_shared<codec::block_params>(
                                                  codec::params_of(r, *options.facts))
                                            : params_of_thread(r));
            const std::string& file = r.outer.file;
            given_.push_back(file.empty() ? nullptr : std::make_unique<given_scales>(file));
            needs_facts_.push_back(!options.facts && codec::needs_tensor_facts(r));
        }
        if (request.partial && !request.partial->merges) {
            ranges_ = ranges_of(models.front(), request.partial->part);
        } else {
            for (std::size_t t = 0; t < models.front().size(); ++t) {
                ranges_.push_back({t, 0, models.front()[t].info().elements});
            }
        }
        for (const tensor_range& p : ranges_) elements_ += p.end - p.first;
        if (request.partial && request.partial->merges) request.partial->arrange(models.front());
        // Panels of several models are in memory together, so tensors are not kept.
        if (models.size() > 1) {
            control_.kept_elements = 0;
        } else {
            panel_target_ = panel_target_of(control.chosen_backend());
        }
        // Without blocks the CPU quantizes, which reads fewer types than a device.
        const bool blocks = std::ranges::all_of(request.recipes, codec::has_blocks);
        for (int i = 0; i < base::thread_count(control.threads); ++i) {
            spaces_.emplace_back(control_, models.size());
            if (models.size() == 1 && blocks) quantizers_.push_back(&spaces_.back().quantizer.by());
        }
    }

    std::vector<skipped_tensor> run() {
        const std::vector<tensor_ref>& tensors = models_.front();
        note_second_reads();
        for (std::size_t i = 0; i < ranges_.size();) {
            std::size_t whole = i;
            while (whole < ranges_.size() && is_whole(ranges_[whole])) ++whole;
            if (whole == i) {
                run_batch_of(ranges_[i].tensor, 1, &ranges_[i]);
                ++i;
            } else {
                run_tensors(ranges_[i].tensor, tensors, whole - i);
                i = whole;
            }
        }
        return std::move(skipped_);
    }

  private:
    bool is_whole(const tensor_range& p) const {
        return p.end - p.first == models_.front()[p.tensor].info().elements;
    }

    void run_tensors(std::size_t first, const std::vector<tensor_ref>& tensors,
                     std::size_t number) {
        std::size_t step = std::max<std::size_t>(1, number);
        for (const visitor* v : visitors_) step = std::min(step, v->tensors_at_once());
        for (const std::size_t end = first + number; first < end;) {
            std::size_t count = std::min(std::max<std::size_t>(1, step), end - first);
            if (any_facts() && models_.size() == 1) {
                count = tensors_of_amax_pass(tensors, first, count, control_);
            }
            run_batch_of(first, count);
            first += count;
        }
    }

    // Over a network, reading twice costs twice as much.
    void note_second_reads() const {
        if (!control_.notices || !any_facts() || (request_.partial && request_.partial->merges))
            return;
        std::uint64_t bytes = 0;
        for (const std::vector<tensor_ref>& model : models_) {
            for (const tensor_range& p : ranges_) {
                const io::tensor_info& info = model[p.tensor].info();
                const bool twice = info.elements > control_.kept_elements;
                if (twice && io::is_remote(info.file)) bytes += bytes_of(info);
            }
        }
        if (bytes == 0) return;
        control_.notices->once(
            "second reads",
            fmt::format("{} bytes of remote files are fetched twice: a scale of the "
                        "tensor needs its largest magnitude first",
                        bytes));
    }

    bool any_facts() const {
        return std::find(needs_facts_.begin(), needs_facts_.end(), true) != needs_facts_.end();
    }

    std::vector<tensor_ref> tensors_of(std::size_t model, std::size_t first,
                                       std::size_t count) const {
        const auto from = models_[model].begin() + static_cast<std::ptrdiff_t>(first);
        return {from, from + static_cast<std::ptrdiff_t>(count)};
    }

    void run_batch_of(std::size_t first, std::size_t count, const tensor_range* range = nullptr) {
        batch_at_work b;
        b.range = range;
        b.first = first;
        b.tensors = tensors_of(0, first, count);
        b.rounded = std::vector<std::atomic<std::uint64_t>>(count);
        std::uint64_t elements = 0;
        for (std::size_t t = 0; t < count; ++t) {
            plan_tensor(b, t);
            elements += b.tensors[t].info().elements;
        }
        if (range != nullptr) elements = range->end - range->first;
        if (request_.partial && request_.partial->merges) return merge(b, elements);
        std::vector<std::vector<tensor_ref>> others;
        for (std::size_t m = 1; m < models_.size(); ++m) {
            others.push_back(tensors_of(m, first, count));
        }
        if (any_facts()) {
            find_facts(b, 0, b.tensors);
            for (std::size_t m = 1; m < models_.size(); ++m) find_facts(b, m, others[m - 1]);
        }
        for (const auto& other : others) {
            b.others.push_back(std::make_unique<panel_reader>(other, b.passes));
        }
        for (visitor* v : visitors_) v->begin(b);
        plan_counting(b);
        sweep(
            b.tensors, b.passes, part_of(control_, finished_, elements, elements_), form(),
            [&](const loaded_panel& p) { work(b, p); }, b.before.kept, quantizers_);
        finished_ += elements;
        b.inexact.assign(b.rounded.begin(), b.rounded.end());
        if (request_.partial) save(b);
        if (range != nullptr) return;
        for (visitor* v : visitors_) v->end(b);
    }

    // The part's results for the batch.
    void save(batch_at_work& b) {
        b.each_tensor([&](std::size_t t, std::size_t first, std::size_t end) {
            const io::tensor_info& info = b.tensors[t].info();
            const tensor_range range =
                b.range != nullptr ? *b.range : tensor_range{b.first + t, 0, info.elements};
            range_sums s{range,
                         info.name,
                         b.range != nullptr ? bytes_of(info, range) : bytes_of(info),
                         b.range == nullptr,
                         b.inexact[t],
                         {},
                         {}};
            base::archive own;
            for (visitor* v : visitors_) v->serialize_tensor(b, t, own);
            s.own = own.text();
            for (std::size_t j = first; j < end; ++j) {
                base::archive text;
                serialize(b, j, text);
                s.jobs.push_back(text.text());
            }
            request_.partial->sums.push_back(std::move(s));
        });
    }

    void serialize(batch_at_work& b, std::size_t job, base::archive& with) {
        for (codec::tensor_facts& f : b.facts[job]) with.raise(f.amax_bits);
        for (visitor* v : visitors_) v->serialize_job(b, job, with);
    }

    // Combines the batch from the parts' results.
    void merge(batch_at_work& b, std::uint64_t elements) {
        for (std::size_t j = 0; j < b.jobs.size(); ++j) {
            run_job& job = b.jobs[j];
            if (needs_facts_[job.recipe]) b.facts[j].resize(models_.size());
            const io::tensor_info& info = b.info(job);
            if (needs_facts_[job.recipe] && info.elements > control_.kept_elements) job.passes = 2;
        }
        b.inexact.assign(b.tensors.size(), 0);
        for (visitor* v : visitors_) v->begin(b);
        b.each_tensor([&](std::size_t t, std::size_t first, std::size_t end) {
            std::vector<range_sums>& sums = request_.partial->sums;
            for (; merged_ < sums.size() && sums[merged_].of.tensor == b.first + t; ++merged_) {
                base::stop_if(control_.cancel);
                const range_sums s = std::move(sums[merged_]);
                try {
                    if (s.jobs.size() != end - first) {
                        throw base::error(base::error_kind::input,
                                          "a part holds sums of other recipes");
                    }
                    b.inexact[t] += s.inexact;
                    base::archive own(s.own);
                    for (visitor* v : visitors_) v->serialize_tensor(b, t, own);
                    own.end();
                    for (std::size_t j = first; j < end; ++j) {
                        base::archive text(s.jobs[j - first]);
                        serialize(b, j, text);
                        text.end();
                    }
                } catch (const base::error& e) {
                    throw base::error(e.kind(), e.message(), {{}, s.tensor, {}});
                }
            }
        });
        for (std::size_t j = 0; j < b.jobs.size(); ++j) {
            run_job& job = b.jobs[j];
            for (std::size_t m = 0; m < b.facts[j].size(); ++m) {
                job.params[m] = std::make_shared<codec::block_params>(
                    codec::params_of(request_.recipes[job.recipe], b.facts[j][m]));
            }
        }
        finished_ += elements;
        for (visitor* v : visitors_) v->end(b);
    }

    panel_form form() const { return options_.values ? panel_form::widened : panel_form::stored; }

    void plan_tensor(batch_at_work& b, std::size_t t) {
        const io::tensor_info& info = b.tensors[t].info();
        std::string reason;
        std::vector<grid_job> grids;
        if (options_.values) {
            grids.push_back({values_job, lay_out(info, codec::recipe{}, reason)->grid});
        }
        for (std::size_t r = 0; r < request_.recipes.size(); ++r) {
            const codec::recipe& recipe = request_.recipes[r];
            const std::optional<geometry> layout = lay_out(info, recipe, reason);
            if (!layout) {
                skipped_.push_back({info.file, info.name, codec::to_string(recipe), reason});
                continue;
            }
            const auto params = params_in(r, b.tensors[t]);
            if (!params) {
                skipped_.push_back(
                    {info.file, info.name, codec::to_string(recipe), given_[r]->why_left_out()});
                continue;
            }
            for (std::size_t phase = 0; phase < request_.factors.size(); ++phase) {
                if (info.elements != 0) grids.push_back({b.jobs.size(), layout->grid});
                b.jobs.push_back(
                    {b.first + t, r, phase, *layout,
                     input_transform_of(request_, info, recipe, request_.factors[phase]), 1,
                     std::vector(models_.size(), params)});
                b.facts.emplace_back();
            }
        }
        const std::uint64_t target = b.range != nullptr ? split_panel_target(info) : panel_target_;
        for (pass& p : plan_passes(t, grids, target)) {
            if (b.range != nullptr)
                p.panels.keep_range(b.range->first, b.range->end, info.elements);
            b.first_pass.push_back(b.passes.empty() || b.passes.back().tensor != t);
            b.passes.push_back(std::move(p));
        }
    }

    // Decides which jobs are counted: all jobs of a grid, or none.
    void plan_counting(batch_at_work& b) {
        b.counted_with.resize(b.jobs.size());
        b.panels = std::vector<std::atomic<std::uint64_t>>(b.tensors.size());
        for (const pass& p : b.passes) {
            b.panels[p.tensor] += p.panels.count();
            std::vector<std::size_t> jobs;
            for (const grid_job& g : p.jobs) {
                if (g.job != values_job && may_count(b, b.jobs[g.job])) jobs.push_back(g.job);
            }
            std::vector<counted_jobs*> counted;
            std::vector<block::grid> grids;
            for_each_group(
                std::move(jobs),
                [&](std::size_t i, std::size_t k) {
                    return b.jobs[i].layout.grid == b.jobs[k].layout.grid;
                },
                [&](const std::vector<std::size_t>& same) {
                    counted_jobs c;
                    c.tensor = p.tensor;
                    c.jobs = same;
                    c.type = b.tensors[p.tensor].info().type;
                    c.lasting = true;
                    for (const std::size_t i : same) {
                        const codec::block_params* const params = b.jobs[i].params[0].get();
                        c.recipes.push_back(
                            {params, codec::detail::none, requested(b.jobs[i]).parts});
                        c.lasting &= b.jobs[i].params[0] == params_[b.jobs[i].recipe];
                    }
                    if (!is_counted(control_, p.panels.elements(), c.recipes)) return;
                    c.by_thread.resize(spaces_.size());
                    b.counted.push_back(std::move(c));
                    for (const std::size_t i : same) b.counted_with[i] = &b.counted.back();
                    counted.push_back(&b.counted.back());
                    grids.push_back(b.jobs[same.front()].layout.grid);
                });
            if (counts_.joins()) join_halves(counted, grids);
        }
    }

    bool may_count(const batch_at_work& b, const run_job& j) const {
        if (counts_.empty() || models_.size() > 1 || options_.values || !j.how.nothing()) {
            return false;
        }
        for (const visitor* v : visitors_) {
            if (!v->beside_counts(j)) return false;
        }
        return requested(j).sums && codec::counts_words(*j.params[0], b.info(j).type);
    }

    // Counts a panel under the jobs of one grid; false if it must be quantized. `joined`: what was
    // counted together with other jobs of the panel.
    bool count(batch_at_work& b, const run_panel& p, const std::vector<std::size_t>& members,
               std::size_t thread, std::vector<const counted_jobs*>& joined) {
        if (members.empty()) return true;
        counted_jobs& c = *b.counted_with[p.jobs[members.front()]];
        if (std::ranges::count(joined, &c) != 0) return true;
        workspace& w = spaces_[thread];
        const auto count_to = [&](const counted_jobs& jobs, auto& to) {
            w.quantizer.count(b.jobs[jobs.jobs.front()].layout.grid, p.where, w.ready.front(), to,
                              control_.cancel);
        };
        if (c.halves != nullptr || c.blocks != nullptr) {
            counted_jobs& blocks = c.halves != nullptr ? c : *c.blocks;
            codec::joint_counts& both = counts_.of_both(blocks, thread);
            if (!both.full()) {
                count_to(blocks, both);
                joined = {&blocks, blocks.halves};
                return true;
            }
        }
        codec::word_counts& to = counts_.of(c, thread);
        if (to.full()) return false;
        count_to(c, to);
        return true;
    }

    // Called when a panel of a tensor is done; after the last one, passes the counts to the
    // visitors.
    void end_panel(batch_at_work& b, std::size_t tensor) {
        if (--b.panels[tensor] != 0) return;
        for (counted_jobs& c : b.counted) {
            if (c.tensor == tensor) counts_.settle(c);
        }
        for (counted_jobs& c : b.counted) {
            if (c.tensor != tensor) continue;
            const std::vector<block::segment_stats> totals = counts_.finish(c);
            for (std::size_t i = 0; i < totals.size(); ++i) {
                for (visitor* v : visitors_) v->total(b, c.jobs[i], totals[i]);
            }
        }
    }

    // The scale for a tensor of a recipe with given scales; null if the file lacks it.
    std::shared_ptr<const codec::block_params> params_in(std::size_t recipe,
                                                         const tensor_ref& tensor) const {
        if (!given_[recipe]) return params_[recipe];
        const std::optional<float> scale = given_[recipe]->of(tensor);
        if (!scale) return nullptr;
        auto params = std::make_shared<codec::block_params>(*params_[recipe]);
        codec::set_tensor_scale(*params, *scale);
        return params;
    }

    // The amax pass, and its results for the jobs that need them.
    void find_facts(batch_at_work& b, std::size_t model, const std::vector<tensor_ref>& tensors) {
        std::vector<std::vector<fact_request>> requests(tensors.size());
        for (const run_job& j : b.jobs) {
            if (needs_facts_[j.recipe])
                requests[j.tensor - b.first].push_back({j.how, j.layout.grid});
        }
        amax_pass found = run_amax_pass(tensors, requests, control_);
        std::vector<std::size_t> next(tensors.size());
        for (std::size_t i = 0; i < b.jobs.size(); ++i) {
            run_job& j = b.jobs[i];
            if (!needs_facts_[j.recipe]) continue;
            const std::size_t t = j.tensor - b.first;
            b.facts[i].push_back(found.facts[t][next[t]++]);
            j.params[model] = std::make_shared<codec::block_params>(
                codec::params_of(request_.recipes[j.recipe], b.facts[i].back()));
            // Empty tensors are kept as well, at no cost.
            if (tensors[t].info().elements != found.kept[t].size()) j.passes = 2;
        }
        if (model != 0) return;
        // For a split tensor, the amax pass covers the whole tensor; its first range counts the
        // inexact values.
        if (b.range == nullptr || b.range->first == 0) {
            for (std::size_t t = 0; t < tensors.size(); ++t) b.rounded[t] = found.inexact[t];
        }
        b.before = std::move(found);
    }

    void work(batch_at_work& b, const loaded_panel& p) {
        const auto thread = static_cast<std::size_t>(p.thread);
        workspace& w = spaces_[thread];
        const std::size_t t = p.of->tensor;
        const io::tensor_info& info = b.tensors[t].info();
        // Every pass of a tensor reads all of it; only the first one counts inexact values.
        if (b.first_pass[p.pass_index]) b.rounded[t] += p.inexact;
        w.stored.assign(1, p.values);
        std::uint64_t ignored = 0;
        for (std::size_t m = 1; m < models_.size(); ++m) {
            w.stored.push_back(
                b.others[m - 1]->read(*p.of, p.pass_index, p.where, form(), w.buffers[m], ignored));
        }
        std::vector<std::size_t> jobs;
        const block::grid* rows = nullptr;
        for (const grid_job& g : p.of->jobs) {
            if (g.job == values_job) {
                rows = &g.grid;
            } else {
                jobs.push_back(g.job);
            }
        }
        if (rows != nullptr) prepare_all(input_transform_of(request_, info, {}), *rows, p.where, w);
        std::vector<std::uint8_t> by_counts(jobs.size());
        const run_panel panel{b, b.first + t, p.where, jobs, rows, w.ready, by_counts};
        std::vector<std::unique_ptr<panel_visitor>> visiting;
        const auto visit = [&] {
            for (visitor* v : visitors_) {
                if (auto one = v->visit(panel)) visiting.push_back(std::move(one));
            }
        };
        // If nothing is quantized, only visitors of values are needed.
        bool visited = rows != nullptr || jobs.empty();
        if (visited) visit();
        std::vector<std::size_t> members(jobs.size());
        for (std::size_t i = 0; i < members.size(); ++i) members[i] = i;
        std::vector<const counted_jobs*> joined;
        // Prepares the panel once for all jobs with the same input transform; of these, jobs with
        // the same grid share the values of a segment while they are in the cache.
        for_each_group(
            std::move(members),
            [&](std::size_t i, std::size_t k) {
                const run_job &a = panel.job(i), &c = panel.job(k);
                return a.how == c.how && alike(a.how, c.layout.grid, a.layout.grid);
            },
            [&](std::vector<std::size_t> same) {
                const run_job& like = panel.job(same.front());
                prepare_all(like.how, like.layout.grid, p.where, w);
                for_each_group(
                    std::move(same),
                    [&](std::size_t i, std::size_t k) {
                        const run_job &a = panel.job(i), &c = panel.job(k);
                        return a.layout.grid == c.layout.grid &&
                               a.params[0]->has_blocks == c.params[0]->has_blocks;
                    },
                    [&](std::vector<std::size_t> on_grid) {
                        const auto counted = std::stable_partition(
                            on_grid.begin(), on_grid.end(),
                            [&](std::size_t i) { return !b.counted_with[jobs[i]]; });
                        if (count(b, panel, {counted, on_grid.end()}, thread, joined)) {
                            for (auto i = counted; i != on_grid.end(); ++i) by_counts[*i] = 1;
                            const auto nothing = [&](std::size_t i) {
                                return is_nothing(request_of(panel, i));
                            };
                            on_grid.erase(std::remove_if(counted, on_grid.end(), nothing),
                                          on_grid.end());
                        }
                        if (on_grid.empty()) return;
                        if (!std::exchange(visited, true)) visit();
                        quantize(panel, on_grid, base::tensor_id(info.name), visiting, w);
                    });
            });
        for (const auto& v : visiting) v->end();
        end_panel(b, t);
    }

    // The values of every model after the transform `how`.
    static void prepare_all(const input_transform& how, const block::grid& g, const panel& where,
                            workspace& w) {
        w.ready.resize(w.stored.size());
        for (std::size_t m = 0; m < w.stored.size(); ++m) {
            w.ready[m] =
                how.nothing() ? w.stored[m] : prepare(how, g, where, w.stored[m], w.prepared[m]);
        }
    }

    void quantize(const run_panel& p, const std::vector<std::size_t>& members,
                  std::uint64_t tensor_id,
                  const std::vector<std::unique_ptr<panel_visitor>>& visiting, workspace& w) {
        w.requests.clear();
        for (std::size_t m = 0; m < models_.size(); ++m) {
            for (const std::size_t i : members) {
                w.requests.push_back(request_of(p, i));
                w.requests.back().params = p.job(i).params[m].get();
            }
        }
        w.quantizer.run(p.job(members.front()).layout.grid, p.where, w.ready, tensor_id, w.requests,
                        [&](const quantized_segment& s) {
                            for (const auto& v : visiting) v->segment(s, members);
                        });
    }

    static bool is_nothing(const codec::recipe_request& r) {
        return r.wanted == codec::detail::none && !r.values && !r.inputs;
    }

    // What is left for a quantizer.
    codec::recipe_request request_of(const run_panel& p, std::size_t i) const {
        return p.counted[i] == 0
                   ? requested(p.job(i))
                   : all_of([&](const visitor& v) { return *v.beside_counts(p.job(i)); });
    }

    codec::recipe_request requested(const run_job& j) const {
        return all_of([&](const visitor& v) { return v.requested(j); });
    }

    // The union of the visitors' requests.
    template <typename Of>
    codec::recipe_request all_of(Of&& of) const {
        codec::recipe_request all;
        all.sums = false;
        for (const visitor* v : visitors_) {
            const codec::recipe_request one = of(*v);
            all.wanted = std::max(all.wanted, one.wanted);
            all.parts = all.parts || one.parts;
            all.values = all.values || one.values;
            all.inputs = all.inputs || one.inputs;
            all.sums = all.sums || one.sums;
        }
        return all;
    }

    std::span<const std::vector<tensor_ref>> models_;
    const run_request& request_;
    std::span<visitor* const> visitors_;
    run_control control_;
    run_options options_;
    std::vector<std::shared_ptr<const codec::block_params>> params_;  // by recipe
    std::vector<bool> needs_facts_;                                   // by recipe
    std::vector<std::unique_ptr<given_scales>> given_;                // by recipe; null: none
    std::uint64_t panel_target_ = panel_target;
    std::deque<workspace> spaces_;               // by thread
    std::vector<codec::quantizer*> quantizers_;  // those of one model's panels, else none
    count_pool counts_;
    std::vector<tensor_range> ranges_;  // to run, by tensor
    std::uint64_t elements_ = 0, finished_ = 0;
    std::size_t merged_ = 0;  // sums of the parts already used
    std::vector<skipped_tensor> skipped_;
};

}  // namespace

void visitor::serialize_job(const run_batch&, std::size_t, base::archive&) {
    base::refuse("this cannot be done in parts: leave --shard out");
}

input_transform input_transform_of(const run_request& request, const io::tensor_info& info,
                                   const codec::recipe& r, float factor) {
    const bool is_norm = request.norm_bias != 0 && request.roles.role_of(info) == "norm";
    return {is_norm ? request.norm_bias : 0.0f, factor, r.rotate};
}

std::vector<skipped_tensor> run(std::span<const std::vector<tensor_ref>> models,
                                const run_request& request, std::span<visitor* const> visitors,
                                const run_control& control, const run_options& options) {
    return tensor_run(models, request, visitors, control, options).run();
}

std::vector<skipped_tensor> run(const std::vector<tensor_ref>& tensors, const run_request& request,
                                visitor& study, const run_control& control) {
    visitor* const only = &study;
    return run(std::span(&tensors, 1), request, std::span(&only, 1), control);
}

run_control part_of(const run_control& control, std::uint64_t done, std::uint64_t part,
                    std::uint64_t total) {
    run_control c = control;
    if (!control.on_progress) return c;
    c.on_progress = [&control, done, part, total](const progress& p) {
        const double fraction = static_cast<double>(p.done) / static_cast<double>(p.total);
        const double so_far = fraction * static_cast<double>(part);
        control.on_progress({done + static_cast<std::uint64_t>(so_far), total});
    };
    return c;
}

}  // namespace mx::engine
