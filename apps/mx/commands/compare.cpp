// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <memory>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/review_page.hpp"
#include "apps/mx/commands/role_options.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/input_records.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/pages/views/compare_view.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::app {
namespace {

using namespace compare;

// The axes of a sweep as options: --NAME VALUE,... sets the recipe key. The last varies fastest.
struct axis_row {
    const char* option;
    const char* key;
    const char* type;
    const char* help;
};
constexpr std::array axis_rows{
    axis_row{"--element", "element", "F,...", "element formats (e4m3,e5m2,e2m3,e3m2,e2m1)"},
    axis_row{"--scale-format", "scale_format", "F,...", "scale formats: e8m0, ue4m3, f32"},
    axis_row{"--dialect", "dialect", "NAME,...", "dialects (mx dialects)"},
    axis_row{"--transform", "transform", "NAME,...", "rotations before quantization"},
    axis_row{"--transform-size", "transform_size", "N,...", "elements that are rotated together"},
    axis_row{"--offset", "offset", "none,fp16", "symmetric, or with the block's centre subtracted"},
    axis_row{"--axis", "axis", "K,...", "axes that 1-D blocks run along (-1: last), or flat"},
    axis_row{"--block", "block", "RxC,...", "blocks: 1x32 row, 32x1 column, 4x4 tile, ..."},
    axis_row{"--round", "round", "NAME,...", "roundings (mx rules)"},
    axis_row{"--scale", "scale", "RULE,...", "scale rules (floor,ceil,even,rceil)"},
};

// Without --recipe: the elements of the OCP formats under the rules that the literature compares.
constexpr std::array default_elements{"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"};
constexpr std::array default_rules{"floor", "ceil", "even", "rceil"};
// Says nothing that the axis of elements would not replace.
constexpr const char* blank_recipe = "mxfp8";

struct options {
    input_options in;
    output_options out;
    run_options run;
    role_options roles;
    pages::compare_view_options view;
    std::vector<std::string> recipes;
    std::array<std::vector<std::string>, axis_rows.size()> axes;
    std::string baseline;
    std::uint64_t seeds = 5;
    bool phase_sweep = false;
    review_page_options page;
};

const std::vector<std::string>& values_of(const options& o, std::string_view key) {
    std::size_t i = 0;
    while (axis_rows[i].key != key) ++i;
    return o.axes[i];
}

sweep_request request_of(const options& o) {
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

int run(const options& o) {
    const sweep_plan plan = plan_sweep(request_of(o));
    analysis::analysis_request request = request_of(plan, o.phase_sweep);
    request.roles = finder_of(o.roles);
    request.norm_bias = o.roles.norm_bias;
    const engine::run_control control = control_of(o.run);
    outputs to(o.out, o.in.files);
    request.distributions = to.wants("html");
    const engine::model model = open_inputs(o.in);
    to.check_inputs(paths_of(model, {}));
    const std::vector<engine::tensor_ref> tensors =
        with_roles(model.select(o.in.globs), o.roles, request.roles);
    analysis::analysis a = analysis::analyze(tensors, request, control);
    engine::require_any(analysis::has_elements(a.results), a.skipped);
    const comparison c = evaluate(plan, a, o.phase_sweep);

    report::document d;
    d.sections = pages::compare_sections(plan, c, a.skipped, o.view);
    d.head = pages::document_head("mx.analysis/1");
    d.head.emplace_back("inputs", input_list(model, o.page.sha256 || request.distributions));
    d.tail = comparison_members(plan, c);
    d.tail.emplace_back("skipped", skipped_list(a.skipped));
    if (request.distributions) d.tail.emplace_back("distributions", a.sums.members());
    d.results = records_of(a.results);
    finish_with_page(to, d, a.results, o.page, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_compare(parser& cmd) {
    const auto o = std::make_shared<options>();
    declare_inputs(cmd, o->in, byte_offset_only);
    declare_roles(cmd, o->roles);
    cmd.add_option("-r,--recipe", o->recipes,
                   "what the axes are applied to; repeatable; without it the elements' own formats")
        ->allow_extra_args(false)
        ->type_name("RECIPE")
        ->group("Sweep");
    for (std::size_t i = 0; i < axis_rows.size(); ++i) {
        cmd.add_option(axis_rows[i].option, o->axes[i], axis_rows[i].help)
            ->delimiter(',')
            ->allow_extra_args(false)
            ->type_name(axis_rows[i].type)
            ->group("Sweep");
    }
    cmd.add_option("--seeds", o->seeds,
                   "recipes per cell that draws random numbers, seeds counted up (5)")
        ->in_range(1, 1000)
        ->type_name("N")
        ->group("Sweep");
    cmd.add_flag("--phase-sweep", o->phase_sweep,
                 fmt::format("also with the tensors times 2^(i/{}): how much of a win depends on "
                             "where they lie in their binades",
                             phase_count))
        ->group("Sweep");
    cmd.add_option("--baseline", o->baseline, "what R-MSEs are relative to (the first cell)")
        ->type_name("RECIPE")
        ->group("Ranking");
    cmd.add_option("--top", o->view.top, "cells shown (20); JSON has all")
        ->in_range(1, 1000000)
        ->type_name("N")
        ->group("Ranking");
    cmd.add_flag("--layers", o->view.layers, "also the best cell of every layer")->group("Ranking");
    declare_outputs(cmd, o->out);
    declare_page(cmd, o->page);
    declare_run(cmd, o->run);
    cmd.description(
        "Ranks every combination of the axes given, in one pass over the file: R-MSE relative to a "
        "baseline as a geometric mean over tensors, wins, the Pareto front of bits against SQNR, "
        "the best cell by role and layer, and how often the bytes of scale rules differ. Axes are "
        "lists with commas; combinations that a format or dialect does not have are left out with "
        "the reason. Without axes: five elements under the rules floor, ceil, even and rceil. CSV "
        "and 'results' of JSON are the records of mx analyze.");
    examples(cmd,
             "mx compare model.safetensors\n"
             "mx compare model.safetensors --element e2m1 --scale floor,even,rceil --block "
             "1x16,1x32\n"
             "mx compare model.safetensors -r mxfp4 -r nvfp4 --round rtne,stochastic --seeds 8\n"
             "mx compare model.safetensors --role norm --layers --baseline mxfp8:scale=even\n"
             "mx compare model.safetensors --element e2m1 --phase-sweep --json sweep.json\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app
