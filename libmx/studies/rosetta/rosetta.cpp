// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/rosetta/rosetta.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <mutex>

#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/engine/panel_quantizer.hpp"
#include "libmx/engine/prologue.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/sweep.hpp"

namespace mx::rosetta {
namespace {

using codec::block_params;

// What one block became under one recipe.
struct reading {
    std::span<const std::uint8_t> codes;
    float scale = 0;    // of the block
    double factor = 0;  // the whole factor of q, tensor scale included
    std::size_t alike;  // the first recipe with the same codes and values of codes
};

bool same_scale(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Sums of one segment in plain doubles, added to the exact ones when it ends: like the segments of
// every other sum here, they are fixed by the block's index in its tensor.
struct segment_sums {
    std::vector<double> own_a, crossed_a, own_b, crossed_b;

    explicit segment_sums(std::size_t pairs)
        : own_a(pairs), crossed_a(pairs), own_b(pairs), crossed_b(pairs) {}

    void flush(rosetta_counts& to) {
        for (std::size_t i = 0; i < own_a.size(); ++i) {
            to.pairs[i].a_read_by_b.own.add(own_a[i]);
            to.pairs[i].a_read_by_b.crossed.add(crossed_a[i]);
            to.pairs[i].b_read_by_a.own.add(own_b[i]);
            to.pairs[i].b_read_by_a.crossed.add(crossed_b[i]);
        }
        for (auto* sums : {&own_a, &crossed_a, &own_b, &crossed_b}) {
            std::fill(sums->begin(), sums->end(), 0.0);
        }
    }
};

// Sum of (factor q - x)^2 over the finite elements.
double squared_error(std::span<const float> x, std::span<const std::uint8_t> codes,
                     const float* value, double factor) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!std::isfinite(x[i])) continue;
        const double error =
            factor * static_cast<double>(value[codes[i]]) - static_cast<double>(x[i]);
        sum += error * error;
    }
    return sum;
}

// The blocks of one panel, every pair of recipes.
class pair_counter {
  public:
    explicit pair_counter(const std::vector<block_params>& params)
        : params_(params),
          readings_(params.size()),
          errors_(params.size() * params.size()),
          known_(errors_.size()),
          counts(params.size()),
          sums_(counts.pairs.size()) {
        for (const block_params& p : params) {
            requests_.push_back({&p, codec::detail_for_scales(p), false, false, true});
        }
    }

    void run(engine::panel_quantizer& by, const block::grid& g, const engine::panel& where,
             const codec::stored_values& x, std::uint64_t tensor_id) {
        by.run(g, where, x, tensor_id, requests_, [&](const engine::quantized_segment& s) {
            for (std::size_t b = 0; b < s.place.blocks(); ++b) add(s, b);
            sums_.flush(counts);
        });
    }

  private:
    void add(const engine::quantized_segment& s, std::size_t block) {
        const std::size_t n = params_.size();
        const std::size_t size = codec::extent_of(s.place, block).size();
        const codec::block_results& any = s.by_recipe.front().of_blocks;
        const std::span x(any.inputs + block * any.stride, size);
        for (std::size_t r = 0; r < n; ++r) {
            const codec::block_results& d = s.by_recipe[r].of_blocks;
            reading& to = readings_[r];
            to.codes = std::span(d.codes + block * d.stride, size);
            to.scale = codec::scale_of_block(params_[r], d, block);
            to.factor =
                static_cast<double>(to.scale) * static_cast<double>(params_[r].tensor.decode);
            to.alike = r;
            for (std::size_t k = 0; k < r && to.alike == r; ++k) {
                if (readings_[k].alike == k && same_codes(k, r) && same_values(k, r)) to.alike = k;
            }
        }
        std::fill(known_.begin(), known_.end(), false);
        const auto finite = static_cast<std::uint64_t>(
            std::count_if(x.begin(), x.end(), [](float v) { return std::isfinite(v); }));
        ++counts.blocks;
        counts.elements += x.size();
        std::size_t i = 0;
        for (std::size_t a = 0; a < n; ++a) {
            for (std::size_t b = a + 1; b < n; ++b, ++i) compare(x, a, b, i, finite);
        }
    }

    bool same_codes(std::size_t a, std::size_t b) const {
        const std::span<const std::uint8_t> x = readings_[a].codes;
        return std::equal(x.begin(), x.end(), readings_[b].codes.begin());
    }

    // Codes mean the same in both.
    bool same_values(std::size_t a, std::size_t b) const {
        const float* va = params_[a].conversion.value;
        const float* vb = params_[b].conversion.value;
        return std::all_of(readings_[a].codes.begin(), readings_[a].codes.end(),
                           [&](std::uint8_t c) { return same_scale(va[c], vb[c]); });
    }

    void compare(std::span<const float> x, std::size_t a, std::size_t b, std::size_t pair,
                 std::uint64_t finite) {
        const reading& ra = readings_[a];
        const reading& rb = readings_[b];
        rosetta_pair& to = counts.pairs[pair];
        to.scales_differ += same_scale(ra.scale, rb.scale) ? 0u : 1u;
        if (ra.alike != rb.alike) {
            for (std::size_t i = 0; i < x.size(); ++i) {
                to.codes_differ += ra.codes[i] != rb.codes[i] ? 1u : 0u;
            }
        }
        if (!std::isfinite(ra.factor) || !std::isfinite(rb.factor)) return;
        const double aa = error(x, a, a), ab = error(x, a, b);
        const double bb = error(x, b, b), ba = error(x, b, a);
        // A code that means NaN to one of them.
        if (!std::isfinite(aa + ab + bb + ba)) return;
        to.compared += finite;
        sums_.own_a[pair] += aa;
        sums_.crossed_a[pair] += ab;
        sums_.own_b[pair] += bb;
        sums_.crossed_b[pair] += ba;
    }

    // Codes of `codes` under the scale of `scale`; recipes that agree share one computation.
    double error(std::span<const float> x, std::size_t codes, std::size_t scale) {
        const std::size_t from = readings_[codes].alike;
        std::size_t by = scale;
        for (std::size_t k = 0; k < scale; ++k) {
            if (readings_[k].factor == readings_[scale].factor) {
                by = k;
                break;
            }
        }
        const std::size_t at = from * params_.size() + by;
        if (!known_[at]) {
            errors_[at] = squared_error(x, readings_[from].codes, params_[from].conversion.value,
                                        readings_[by].factor);
            known_[at] = true;
        }
        return errors_[at];
    }

    const std::vector<block_params>& params_;
    std::vector<codec::recipe_request> requests_;
    std::vector<reading> readings_;
    std::vector<double> errors_;
    std::vector<bool> known_;

  public:
    rosetta_counts counts;

  private:
    segment_sums sums_;
};

// Tensors whose sums (a megabyte each) are held at a time.
constexpr std::size_t tensors_at_once = 16;

struct tensor_job {
    tensor_job(std::size_t recipes) : counts(recipes) {}
    std::vector<block_params> params;
    std::mutex guard;
    rosetta_counts counts;
};

void check(const std::vector<codec::recipe>& recipes) {
    const auto refuse = [](const codec::recipe& r, std::string_view why) {
        throw base::error(base::error_kind::usage, codec::to_string(r) + ": " + std::string(why));
    };
    for (const codec::recipe& r : recipes) {
        if (r.offset != codec::offset_kind::none)
            refuse(r, "recipes with an offset are not compared");
        if (r.element != recipes.front().element || !(r.block == recipes.front().block) ||
            !(r.axis == recipes.front().axis)) {
            refuse(r, "give recipes of one element format and one block shape");
        }
        if (!(r.rotate == recipes.front().rotate)) {
            refuse(r, "give recipes of one transform: the bytes are of the rotated values");
        }
        if (codec::bumps_positions(r)) {
            refuse(r, "its scales differ inside a block; leave it out");
        }
    }
    if (recipes.size() < 2) {
        throw base::error(base::error_kind::usage, "give at least two recipes to compare");
    }
}

report::value ratio(double crossed, double own) {
    if (own == 0) return crossed == 0 ? report::value(1.0) : report::value();
    return std::sqrt(crossed / own);
}

}  // namespace

void rosetta_pair::merge(const rosetta_pair& other) {
    scales_differ += other.scales_differ;
    codes_differ += other.codes_differ;
    compared += other.compared;
    a_read_by_b.own.merge(other.a_read_by_b.own);
    a_read_by_b.crossed.merge(other.a_read_by_b.crossed);
    b_read_by_a.own.merge(other.b_read_by_a.own);
    b_read_by_a.crossed.merge(other.b_read_by_a.crossed);
}

void rosetta_counts::merge(const rosetta_counts& other) {
    blocks += other.blocks;
    elements += other.elements;
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i].merge(other.pairs[i]);
}

report::record pair_record(const rosetta_counts& c, std::size_t a, std::size_t b,
                           const std::vector<std::string>& names) {
    const rosetta_pair& p = c.pairs[analysis::pair_index(a, b, names.size())];
    const auto tally = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
    const auto share = [](std::uint64_t part, std::uint64_t whole) -> report::value {
        if (whole == 0) return {};
        return static_cast<double>(part) / static_cast<double>(whole);
    };
    const auto root = [&](const base::exact_sum& sum) -> report::value {
        if (p.compared == 0) return {};
        return std::sqrt(sum.value() / static_cast<double>(p.compared));
    };
    const auto cost = [&](const crossed_errors& e) -> report::value {
        if (p.compared == 0) return {};
        return ratio(e.crossed.value(), e.own.value());
    };
    return {{"recipe_a", names[a]},
            {"recipe_b", names[b]},
            {"blocks", tally(c.blocks)},
            {"scales_differ", tally(p.scales_differ)},
            {"scale_difference_rate", share(p.scales_differ, c.blocks)},
            {"elements", tally(c.elements)},
            {"codes_differ", tally(p.codes_differ)},
            {"code_difference_rate", share(p.codes_differ, c.elements)},
            {"compared", tally(p.compared)},
            {"rmse_a", root(p.a_read_by_b.own)},
            {"rmse_b", root(p.b_read_by_a.own)},
            {"rmse_a_read_by_b", root(p.a_read_by_b.crossed)},
            {"rmse_b_read_by_a", root(p.b_read_by_a.crossed)},
            {"cost_a_read_by_b", cost(p.a_read_by_b)},
            {"cost_b_read_by_a", cost(p.b_read_by_a)}};
}

rosetta_result compare_bytes(const std::vector<engine::tensor_ref>& tensors,
                             const std::vector<codec::recipe>& recipes,
                             const engine::run_control& control) {
    check(recipes);
    const std::size_t n = recipes.size();
    rosetta_result result{{}, rosetta_counts(n), {}};
    std::vector<std::string> names;
    bool needs_facts = false;
    for (const codec::recipe& r : recipes) {
        names.push_back(codec::to_string(r));
        needs_facts = needs_facts || codec::needs_tensor_facts(r);
    }
    const std::vector<engine::tensor_ref> numeric = engine::numeric_only(tensors, result.skipped);
    std::uint64_t all = 0;
    for (const engine::tensor_ref& t : numeric) all += t.info().elements;
    std::uint64_t finished = 0;
    std::deque<engine::panel_quantizer> quantizers;  // by thread
    for (int i = 0; i < base::thread_count(control.threads); ++i) quantizers.emplace_back(control);
    for (std::size_t first = 0; first < numeric.size();) {
        const std::size_t limit = std::min(tensors_at_once, numeric.size() - first);
        const std::size_t count =
            needs_facts ? engine::prologue_share(numeric, first, limit, control) : limit;
        const std::vector<engine::tensor_ref> batch(
            numeric.begin() + static_cast<std::ptrdiff_t>(first),
            numeric.begin() + static_cast<std::ptrdiff_t>(first + count));
        first += count;
        const engine::preparation how{0, 1, recipes.front().rotate};
        engine::prologue before;
        if (needs_facts) {
            std::vector<std::vector<engine::facts_wanted>> wanted;
            std::string ignored;
            for (const engine::tensor_ref& t : batch) {
                const auto layout = engine::lay_out(t.info().shape, recipes.front(), ignored);
                wanted.emplace_back();
                if (layout) wanted.back().push_back({how, layout->grid});
            }
            before = engine::run_prologue(batch, wanted, control);
        }
        std::vector<std::unique_ptr<tensor_job>> jobs;
        std::vector<engine::pass> passes;
        std::uint64_t elements = 0;
        for (std::size_t t = 0; t < count; ++t) {
            jobs.push_back(std::make_unique<tensor_job>(n));
            const io::tensor_info& info = batch[t].info();
            std::string reason;
            const auto layout = engine::lay_out(info.shape, recipes.front(), reason);
            if (!layout) {
                result.skipped.push_back({info.file, info.name, "", reason});
                continue;
            }
            for (const codec::recipe& r : recipes) {
                jobs[t]->params.push_back(codec::params_of(
                    r, needs_facts ? before.facts[t].front() : codec::tensor_facts{}));
            }
            const engine::grid_job job{t, layout->grid};
            elements += info.elements;
            if (info.elements == 0) continue;
            for (engine::pass& p : engine::plan_passes(t, std::span(&job, 1)))
                passes.push_back(std::move(p));
        }
        engine::run_control steered = control;
        if (control.on_progress) {
            steered.on_progress = [&](const engine::progress& p) {
                control.on_progress({finished + p.done, all});
            };
        }
        engine::sweep(
            batch, passes, steered, engine::panel_form::stored,
            [&](const engine::loaded_panel& p) {
                tensor_job& j = *jobs[p.of->tensor];
                pair_counter counter(j.params);
                const block::grid& grid = p.of->jobs.front().grid;
                base::aligned_buffer<float> room;
                counter.run(
                    quantizers[static_cast<std::size_t>(p.thread)], grid, p.where,
                    how.rotates() ? engine::prepare(how, grid, p.where, p.values, room) : p.values,
                    base::tensor_id(batch[p.of->tensor].info().name));
                const std::lock_guard lock(j.guard);
                j.counts.merge(counter.counts);
            },
            before.kept);
        finished += elements;
        for (std::size_t t = 0; t < count; ++t) {
            if (jobs[t]->params.empty()) continue;
            result.total.merge(jobs[t]->counts);
            const io::tensor_info& info = batch[t].info();
            for (std::size_t a = 0; a < n; ++a) {
                for (std::size_t b = a + 1; b < n; ++b) {
                    report::record r{{"file", info.file}, {"tensor", info.name}};
                    for (auto& member : pair_record(jobs[t]->counts, a, b, names)) {
                        r.push_back(std::move(member));
                    }
                    result.results.push_back(r);
                }
            }
        }
    }
    return result;
}

}  // namespace mx::rosetta
