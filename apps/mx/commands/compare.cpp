// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "apps/mx/review_page.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/pages/document_parts.hpp"
#include "libmx/pages/views/compare_view.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::app {
namespace {

using namespace compare;

// The axes of a sweep as options: --NAME VALUE,... sets the recipe key. The last varies fastest.
struct axis_row {
    const char* option;
    const char* key;
    const char* help;
};
constexpr std::array axis_rows{
    axis_row{"--element F,...", "element", "element formats (e4m3,e5m2,e2m3,e3m2,e2m1)"},
    axis_row{"--scale-format F,...", "scale_format", "scale formats: e8m0, ue4m3, f32"},
    axis_row{"--dialect NAME,...", "dialect", "dialects (mx dialects)"},
    axis_row{"--transform NAME,...", "transform", "rotations before quantization"},
    axis_row{"--transform-size N,...", "transform_size", "elements that are rotated together"},
    axis_row{"--offset none,fp16", "offset", "symmetric, or with the block's centre subtracted"},
    axis_row{"--axis K,...", "axis", "axes that 1-D blocks run along (-1: last), or flat"},
    axis_row{"--block RxC,...", "block", "blocks: 1x32 row, 32x1 column, 4x4 tile, ..."},
    axis_row{"--round NAME,...", "round", "roundings (mx rules)"},
    axis_row{"--scale RULE,...", "scale", "scale rules (floor,ceil,even,rceil)"},
};

// Without --recipe: the elements of the OCP formats under the rules that the literature compares.
constexpr std::array default_elements{"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"};
constexpr std::array default_rules{"floor", "ceil", "even", "rceil"};
// Says nothing that the axis of elements would not replace.
constexpr const char* blank_recipe = "mxfp8";

struct compare_options : measuring_options {
    pages::compare_view_options view;
    std::array<std::vector<std::string>, axis_rows.size()> axes;
    std::string baseline;
    std::uint64_t seeds = 5;
    bool phase_sweep = false;
};

const std::vector<std::string>& values_of(const compare_options& o, std::string_view key) {
    std::size_t i = 0;
    while (axis_rows[i].key != key) ++i;
    return o.axes[i];
}

sweep_request request_of(const compare_options& o) {
    sweep_request request{o.recipes, {}, o.baseline, o.seeds};
    for (std::size_t i = 0; i < axis_rows.size(); ++i) {
        request.axes.push_back({axis_rows[i].key, o.axes[i]});
    }
    if (!o.recipes.empty()) return request;
    request.bases = {blank_recipe};
    // A dialect or another scale format has rules of its own.
    const bool own_rules =
        !values_of(o, "dialect").empty() || !values_of(o, "scale_format").empty();
    for (axis& a : request.axes) {
        if (!a.values.empty()) continue;
        if (a.key == "element") a.values.assign(default_elements.begin(), default_elements.end());
        if (a.key == "scale" && !own_rules) {
            a.values.assign(default_rules.begin(), default_rules.end());
        }
    }
    return request;
}

// Without a sweep of the user's: what the verdict needs is measured as well.
bool by_default(const compare_options& o) {
    return o.recipes.empty() &&
           std::ranges::all_of(o.axes, [](const auto& a) { return a.empty(); });
}

int run_compare(const compare_options& o) {
    sweep_request sweep = request_of(o);
    sweep_plan plan = plan_sweep(sweep);
    const bool verdict = by_default(o);
    analysis::analysis_request request;
    if (!verdict) request = request_of(plan, o.phase_sweep);
    measured_model m(o, request);
    if (verdict) {
        sweep.more = request.recipes;
        plan = plan_sweep(sweep);
        const analysis::analysis_request wanted = request_of(plan, o.phase_sweep);
        request.recipes = wanted.recipes;
        request.factors = wanted.factors;
        request.scale_groups = wanted.scale_groups;
        request.decompose = wanted.decompose;
    }
    analysis::analysis a = analysis::analyze(m.tensors, request, m.control);
    engine::require_any(analysis::has_elements(a.results), a.skipped);
    const comparison c = evaluate(plan, a, o.phase_sweep);

    report::document d;
    d.sections = pages::compare_sections(plan, c, a.skipped, o.view);
    d.tail = comparison_members(plan, c);
    pages::add_verdict(d, pages::ranking_heading);
    d.results = records_of(a.results);
    m.finish(std::move(d), a.results, a.skipped, a.sums, verdict);
    return exit_code::fine;
}

}  // namespace

runner declare_compare(parser& cmd) {
    const auto o = std::make_shared<compare_options>();
    declare_inputs(cmd, o->in, byte_offset_only);
    declare_roles(cmd, o->roles);
    cmd.group("Sweep");
    cmd.add_option(
        "-r,--recipe RECIPE", o->recipes,
        "what the axes are applied to; repeatable; without it the elements' own formats");
    for (std::size_t i = 0; i < axis_rows.size(); ++i) {
        cmd.add_option(axis_rows[i].option, o->axes[i], axis_rows[i].help)->delimiter(',');
    }
    cmd.add_option("--seeds N", o->seeds,
                   "recipes per cell that draws random numbers, seeds counted up (5)")
        ->in_range(1, 1000);
    cmd.add_flag("--phase-sweep", o->phase_sweep,
                 fmt::format("also with the tensors times 2^(i/{}): how much of a win depends on "
                             "where they lie in their binades",
                             phase_count));
    cmd.group("Ranking");
    cmd.add_option("--baseline RECIPE", o->baseline,
                   "what R-MSEs are relative to (the first cell)");
    cmd.add_option("--top N", o->view.top, "cells shown (20); JSON has all")->in_range(1, 1000000);
    cmd.add_flag("--layers", o->view.layers, "also the best cell of every layer");
    declare_measured_outputs(cmd, *o);
    declare_run(cmd, o->run);
    cmd.description(
        "Ranks every combination of the axes given, in one pass over the file: R-MSE relative to a "
        "baseline as a geometric mean over tensors, wins, the Pareto front of bits against SQNR, "
        "the best cell by role and layer, and how often the bytes of scale rules differ. Axes are "
        "lists with commas; combinations that a format or dialect does not have are left out with "
        "the reason. Without axes: five elements under the rules floor, ceil, even and rceil, and "
        "what the policy judges, whose verdict comes first. CSV and 'results' of JSON are the "
        "records of mx analyze.");
    cmd.examples(
        "mx compare model.safetensors\n"
        "mx compare model.safetensors --element e2m1 --scale floor,even,rceil --block 1x16,1x32\n"
        "mx compare model.safetensors -r mxfp4 -r nvfp4 --round rtne,stochastic --seeds 8\n"
        "mx compare model.safetensors --role norm --layers --baseline mxfp8:scale=even\n"
        "mx compare model.safetensors --element e2m1 --phase-sweep --json sweep.json\n");
    return [o] { return run_compare(*o); };
}

}  // namespace mx::app
