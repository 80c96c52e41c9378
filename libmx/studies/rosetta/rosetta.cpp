// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/rosetta/rosetta.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <mutex>
#include <optional>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/engine/run.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/report/members.hpp"

namespace mx::rosetta {
namespace {

using report::share;
using report::tally;

// The result for one block under one recipe.
struct reading {
    std::span<const std::uint8_t> codes;
    float scale = 0;    // of the block
    double factor = 0;  // the whole factor of q, tensor scale included
    std::size_t alike;  // the first recipe with the same codes and the same values of codes
    std::size_t level;  // the first recipe with the same factor
    std::size_t equal;  // the first recipe with the same values S q
};

bool same_scale(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Sums of a pair over one segment in plain doubles, which are added to the exact sums at its end.
// Like the segments of every other sum, they depend only on the block's index in its tensor.
struct segment_sums {
    double own_a = 0, crossed_a = 0, own_b = 0, crossed_b = 0;

    void flush(rosetta_pair& to) {
        to.a_read_by_b.own.add(own_a);
        to.a_read_by_b.crossed.add(crossed_a);
        to.b_read_by_a.own.add(own_b);
        to.b_read_by_a.crossed.add(crossed_b);
        *this = {};
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

// The counts of one tensor; several threads add to them.
struct shared_counts {
    explicit shared_counts(std::size_t recipes) : counts(recipes) {}
    std::mutex guard;
    rosetta_counts counts;
};

// Compares every pair of recipes on the blocks of one panel.
class panel_pairs final : public engine::panel_visitor {
  public:
    panel_pairs(const engine::run_panel& p, shared_counts& to)
        : to_(to),
          readings_(p.jobs.size()),
          errors_(p.jobs.size() * p.jobs.size()),
          known_(errors_.size()),
          counts_(p.jobs.size()),
          sums_(counts_.pairs.size()) {
        for (std::size_t r = 0; r < p.jobs.size(); ++r) params_.push_back(p.job(r).params[0].get());
    }

    // All recipes have the same blocks, in the same order.
    void segment(const engine::quantized_segment& s, std::span<const std::size_t>) override {
        for (std::size_t b = 0; b < s.place.blocks(); ++b) add(s, b);
        for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i].flush(counts_.pairs[i]);
    }

    void end() override {
        const std::lock_guard lock(to_.guard);
        to_.counts.merge(counts_);
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
            to.scale = codec::scale_of_block(*params_[r], d, block);
            const codec::tensor_scale& outer =
                params_[r]->outer_areas ? s.by_recipe[r].outer : params_[r]->tensor;
            to.factor = static_cast<double>(to.scale) * static_cast<double>(outer.decode);
            to.alike = to.level = to.equal = r;
            for (std::size_t k = 0; k < r && to.level == r; ++k) {
                if (readings_[k].factor == to.factor) to.level = k;
            }
            for (std::size_t k = 0; k < r && to.alike == r; ++k) {
                if (readings_[k].alike == k && same_codes(k, r) && same_values(k, r)) to.alike = k;
            }
            for (std::size_t k = 0; k < r && to.equal == r; ++k) {
                const bool first = readings_[k].equal == k;
                const bool same = readings_[k].alike == to.alike && readings_[k].level == to.level;
                if (first && (same || different_values(k, r) == 0)) to.equal = k;
            }
        }
        known_.assign(known_.size(), false);
        const auto finite = static_cast<std::uint64_t>(
            std::ranges::count_if(x, [](float v) { return std::isfinite(v); }));
        ++counts_.blocks;
        counts_.elements += x.size();
        std::size_t i = 0;
        for (std::size_t a = 0; a < n; ++a) {
            for (std::size_t b = a + 1; b < n; ++b, ++i) compare(x, a, b, i, finite);
        }
    }

    bool same_codes(std::size_t a, std::size_t b) const {
        const std::span<const std::uint8_t> x = readings_[a].codes;
        return std::equal(x.begin(), x.end(), readings_[b].codes.begin());
    }

    // Whether codes have the same values in both.
    bool same_values(std::size_t a, std::size_t b) const {
        const float* va = params_[a]->value;
        const float* vb = params_[b]->value;
        return std::ranges::all_of(readings_[a].codes,
                                   [&](std::uint8_t c) { return same_scale(va[c], vb[c]); });
    }

    // The elements with different values S q.
    std::uint64_t different_values(std::size_t a, std::size_t b) const {
        const reading &ra = readings_[a], &rb = readings_[b];
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < ra.codes.size(); ++i) {
            const double va = ra.factor * static_cast<double>(params_[a]->value[ra.codes[i]]);
            const double vb = rb.factor * static_cast<double>(params_[b]->value[rb.codes[i]]);
            count += va == vb || (std::isnan(va) && std::isnan(vb)) ? 0u : 1u;
        }
        return count;
    }

    void compare(std::span<const float> x, std::size_t a, std::size_t b, std::size_t pair,
                 std::uint64_t finite) {
        const reading& ra = readings_[a];
        const reading& rb = readings_[b];
        rosetta_pair& to = counts_.pairs[pair];
        to.scales_differ += same_scale(ra.scale, rb.scale) ? 0u : 1u;
        if (ra.alike != rb.alike) {
            for (std::size_t i = 0; i < x.size(); ++i) {
                to.codes_differ += ra.codes[i] != rb.codes[i] ? 1u : 0u;
            }
        }
        if (ra.equal != rb.equal) to.values_differ += different_values(ra.equal, rb.equal);
        if (!std::isfinite(ra.factor) || !std::isfinite(rb.factor)) return;
        const double aa = error(x, a, a), ab = error(x, a, b);
        const double bb = error(x, b, b), ba = error(x, b, a);
        // A code that is NaN in one of them.
        if (!std::isfinite(aa + ab + bb + ba)) return;
        to.compared += finite;
        sums_[pair].own_a += aa;
        sums_[pair].crossed_a += ab;
        sums_[pair].own_b += bb;
        sums_[pair].crossed_b += ba;
    }

    // The error of the codes of recipe `codes` under the scale of recipe `scale`; recipes with
    // equal results share one computation.
    double error(std::span<const float> x, std::size_t codes, std::size_t scale) {
        const std::size_t from = readings_[codes].alike;
        const std::size_t by = readings_[scale].level;
        const std::size_t at = from * params_.size() + by;
        if (!known_[at]) {
            errors_[at] =
                squared_error(x, readings_[from].codes, params_[from]->value, readings_[by].factor);
            known_[at] = true;
        }
        return errors_[at];
    }

    shared_counts& to_;
    std::vector<const codec::block_params*> params_;  // by recipe
    std::vector<reading> readings_;
    std::vector<double> errors_;
    std::vector<bool> known_;
    rosetta_counts counts_;
    std::vector<segment_sums> sums_;  // by pair
};

// Tensors whose sums (a megabyte each) are in memory at a time.
constexpr std::size_t most_tensors = 16;

class pair_visitor final : public engine::visitor {
  public:
    pair_visitor(const std::vector<codec::recipe>& recipes, rosetta_result& to) : to_(to) {
        for (const codec::recipe& r : recipes) names_.push_back(codec::to_string(r));
    }

    std::size_t tensors_at_once() const override { return most_tensors; }
    codec::recipe_request requested(const engine::run_job&) const override {
        return {nullptr, codec::detail::codes, false, false, true, false};
    }
    void begin(const engine::run_batch& b) override {
        for (std::size_t t = 0; t < b.tensors.size(); ++t) counts_.emplace_back(names_.size());
    }
    std::unique_ptr<engine::panel_visitor> visit(const engine::run_panel& p) override {
        return std::make_unique<panel_pairs>(p, counts_[p.tensor - p.batch.first]);
    }

    void end(const engine::run_batch& b) override {
        for (const engine::run_job& j : b.jobs) {
            if (j.recipe != 0) continue;
            const rosetta_counts& counts = counts_[j.tensor - b.first].counts;
            to_.total.merge(counts);
            for (std::size_t a = 0; a < names_.size(); ++a) {
                for (std::size_t c = a + 1; c < names_.size(); ++c) {
                    report::record r{{"file", b.info(j).file}, {"tensor", b.info(j).name}};
                    for (auto& member : pair_record(counts, a, c, names_)) {
                        r.push_back(std::move(member));
                    }
                    to_.results.push_back(r);
                }
            }
        }
        counts_.clear();
    }

  private:
    rosetta_result& to_;
    std::vector<std::string> names_;
    std::deque<shared_counts> counts_;  // by tensor of the batch
};

// The areas that share an outer scale.
codec::outer_choice areas_of(const codec::recipe& r) {
    return codec::has_outer_areas(r) ? r.outer : codec::outer_choice{};
}

void check(const std::vector<codec::recipe>& recipes) {
    const auto refuse = [](const codec::recipe& r, std::string_view why) {
        base::refuse(codec::to_string(r) + ": " + std::string(why));
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
        if (codec::bumps_positions(r)) refuse(r, "its scales differ inside a block; leave it out");
        codec::refuse_scale_files(r);
        if (!(codec::has_outer_areas(r) || codec::has_outer_areas(recipes.front()))) continue;
        if (!(areas_of(r) == areas_of(recipes.front()))) {
            refuse(r,
                   "give recipes whose outer scales are those of the same rows, columns or tiles");
        }
    }
    if (recipes.size() < 2) base::refuse("give at least two recipes to compare");
}

report::value ratio(double crossed, double own) {
    if (own == 0) return crossed == 0 ? report::value(1.0) : report::value();
    return std::sqrt(crossed / own);
}

// Presets with an element format that the recipe may replace.
constexpr std::string_view any_preset = "mxfp8", any_number_preset = "nvfp4";

std::string_view preset_of(const std::string& element, const format::scale_format& scales) {
    if (scales.is_number()) return any_number_preset;
    for (const format::block_format& f : format::block_formats) {
        if (f.element == element && f.scale == "e8m0") return f.name;
    }
    return any_preset;
}

// Every kind of four-over-six that the dialect of `plain` has.
void append_selections(const codec::recipe& plain, std::vector<codec::recipe>& to) {
    using codec::candidate_kind, codec::four_over_six, codec::scale_bound;
    const bool te = plain.by->id == codec::dialect_id::te;
    if (plain.element->name != "e2m1" || plain.rule->id != scale::rule_id::two_level) return;
    if (!te && plain.by->id != codec::dialect_id::ocp) return;
    for (const auto select : {four_over_six::mse, four_over_six::mae, four_over_six::abs_max}) {
        if (te && select == four_over_six::abs_max) continue;
        for (const auto bound : {scale_bound::power_of_two, scale_bound::largest}) {
            for (const auto kind : {candidate_kind::exact, candidate_kind::fp16}) {
                const bool fp16 = te && plain.scale_format->name == "ue4m3";
                if (kind == candidate_kind::fp16 && !fp16) continue;
                to.push_back(plain);
                to.back().select = select;
                to.back().bound = bound;
                to.back().candidates = kind;
            }
        }
    }
}

}  // namespace

std::vector<codec::recipe> recipes_of_element(const std::string& element, const std::string& block,
                                              const std::string& scale_format) {
    const format::scale_format& scales =
        base::row_named(format::scale_formats, "scale format", scale_format);
    if (!scales.has_codes()) base::refuse("scale format {}: its scales have no codes", scales.name);
    std::vector<codec::recipe> recipes;
    const std::string start = fmt::format("{}:element={},block={},scale_format={}",
                                          preset_of(element, scales), element, block, scales.name);
    const codec::recipe first = codec::parse_block_recipe(start);
    recipes.push_back(first);
    append_selections(first, recipes);
    for (const codec::dialect& d : codec::dialects()) {
        if (!d.blocks || (!d.elements.empty() && !codec::lists(d.elements, element))) continue;
        const bool ocp = d.id == codec::dialect_id::ocp;
        if (scales.is_number() && !ocp && element != "e2m1") continue;
        if (scales.is_number() && !codec::lists(d.float_scales, scales.name)) continue;
        for (const scale::scale_rule& rule : scale::scale_rules) {
            if (!codec::lists(d.rules, rule.name)) continue;
            if (!codec::lists(rule.scale_format, scales.name)) continue;
            const bool inside =
                d.id == codec::dialect_id::systems_scaling && rule.id == scale::rule_id::floor_bump;
            if (scale::is_random(rule) || inside) continue;
            const codec::recipe r = codec::parse_block_recipe(
                fmt::format("{},scale={},dialect={}", start, rule.name, d.name));
            if (r == first) continue;
            recipes.push_back(r);
            append_selections(r, recipes);
        }
    }
    return recipes;
}

void rosetta_pair::merge(const rosetta_pair& other) {
    scales_differ += other.scales_differ;
    codes_differ += other.codes_differ;
    values_differ += other.values_differ;
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

namespace {

struct compared_pair {
    const rosetta_counts& all;
    const rosetta_pair& of;
    const std::string &a, &b;

    std::optional<double> root(const base::exact_sum& sum) const {
        if (of.compared == 0) return {};
        return std::sqrt(sum.value() / static_cast<double>(of.compared));
    }
    report::value cost(const crossed_errors& e) const {
        return of.compared == 0 ? report::value() : ratio(e.crossed.value(), e.own.value());
    }
};
constexpr std::array pair_members = std::to_array<report::declared<compared_pair>>({
    {"recipe_a", "string", "", [](auto& p) { return p.a; }},
    {"recipe_b", "string", "", [](auto& p) { return p.b; }},
    {"blocks", "count", "", [](auto& p) { return p.all.blocks; }},
    {"scales_differ", "count", "blocks with different scale bytes",
     [](auto& p) { return p.of.scales_differ; }},
    {"scale_difference_rate", "share?", "",
     [](auto& p) { return share(p.of.scales_differ, p.all.blocks); }},
    {"elements", "count", "", [](auto& p) { return p.all.elements; }},
    {"codes_differ", "count", "elements with different codes",
     [](auto& p) { return p.of.codes_differ; }},
    {"code_difference_rate", "share?", "",
     [](auto& p) { return share(p.of.codes_differ, p.all.elements); }},
    {"values_differ", "count", "elements with different decoded values; -0 and 0 are the same",
     [](auto& p) { return p.of.values_differ; }},
    {"value_difference_rate", "share?", "",
     [](auto& p) { return share(p.of.values_differ, p.all.elements); }},
    {"compared", "count", "finite elements that errors are over",
     [](auto& p) { return p.of.compared; }},
    {"rmse_a", "amount?", "", [](auto& p) { return p.root(p.of.a_read_by_b.own); }},
    {"rmse_b", "amount?", "", [](auto& p) { return p.root(p.of.b_read_by_a.own); }},
    {"rmse_a_read_by_b", "amount?", "codes of a under the scales of b",
     [](auto& p) { return p.root(p.of.a_read_by_b.crossed); }},
    {"rmse_b_read_by_a", "amount?", "", [](auto& p) { return p.root(p.of.b_read_by_a.crossed); }},
    {"cost_a_read_by_b", "amount?", "over rmse_a",
     [](auto& p) { return p.cost(p.of.a_read_by_b); }},
    {"cost_b_read_by_a", "amount?", "", [](auto& p) { return p.cost(p.of.b_read_by_a); }},
});

constexpr std::array place_members{
    report::member_type{"file", "@members#file", ""},
    report::member_type{"tensor", "@members#tensor", ""},
};

}  // namespace

report::record pair_record(const rosetta_counts& c, std::size_t a, std::size_t b,
                           const std::vector<std::string>& names) {
    const rosetta_pair& p = c.pairs[analysis::pair_index(a, b, names.size())];
    return report::written(pair_members, {c, p, names[a], names[b]});
}

const std::array<report::declared<engine::skipped_tensor>, 3> skipped_members{{
    {"file", "string", "", [](auto& s) { return s.file; }},
    {"tensor", "string", "", [](auto& s) { return s.tensor; }},
    {"reason", "string", "", [](auto& s) { return s.reason; }},
}};

report::document_schema rosetta_schema() {
    return report::document_schema("mx.rosetta/1", "mx rosetta: recipes compared",
                                   "Where the bytes of scale rules and dialects differ.")
        .member({"inputs", "[@common#input]", "files that were read, in the order given"})
        .member({"results", "[#tensor_pair]", "a tensor under two recipes each"})
        .member({"summary", "[#pair]", "two recipes over all tensors each"})
        .member({"skipped", "[#skipped]", "tensors that were not compared"})
        .define("tensor_pair", report::member_list().add(place_members).add(pair_members))
        .define("pair", pair_members)
        .define("skipped", skipped_members);
}

rosetta_result compare_bytes(const std::vector<engine::tensor_ref>& tensors,
                             const std::vector<codec::recipe>& recipes,
                             const engine::run_control& control) {
    check(recipes);
    rosetta_result result{{}, rosetta_counts(recipes.size()), {}};
    const std::vector<engine::tensor_ref> numeric = engine::numeric_only(tensors, result.skipped);
    engine::run_request request;
    request.recipes = recipes;
    pair_visitor pairs(recipes, result);
    const std::string first = codec::to_string(recipes.front());
    for (engine::skipped_tensor& s : engine::run(numeric, request, pairs, control)) {
        // If one recipe is not possible, none is.
        if (s.recipe != first) continue;
        s.recipe.clear();
        result.skipped.push_back(std::move(s));
    }
    return result;
}

}  // namespace mx::rosetta
