// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "apps/mx/review_page.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::app {
namespace {

// The axes of a sweep as options, in the order of documents::sweep_keys.
struct axis_row {
    const char* option;
    const char* help;
};
constexpr std::array axis_rows{
    axis_row{"--element F,...", "element formats (e4m3,e5m2,e2m3,e3m2,e2m1)"},
    axis_row{"--scale-format F,...", "scale formats: e8m0, ue4m3, f32"},
    axis_row{"--dialect NAME,...", "dialects (mx explain dialects)"},
    axis_row{"--transform NAME,...", "rotations before quantization"},
    axis_row{"--transform-size N,...", "elements that are rotated together"},
    axis_row{"--offset none,fp16", "symmetric, or with the block's centre subtracted"},
    axis_row{"--axis K,...", "axes that 1-D blocks run along (-1: last), or flat"},
    axis_row{"--block RxC,...", "blocks: 1x32 row, 32x1 column, 4x4 tile, ..."},
    axis_row{"--round NAME,...", "roundings (mx explain rules)"},
    axis_row{"--scale RULE,...", "scale rules (floor,ceil,even,rceil)"},
};

static_assert(axis_rows.size() == documents::sweep_keys.size());

struct compare_command {
    documents::compare_options options;
    measured_outputs to;
    bool regret = false, no_regret = false;
};

int run_compare(compare_command o) {
    if (o.regret && o.no_regret) refuse("--regret and --no-regret: give one of them");
    if (o.regret || o.no_regret) o.options.regret = o.regret;
    measured_run run(o.options, o.to);
    run.finish(documents::compare(o.options, run.environment()));
    return exit_code::fine;
}

}  // namespace

runner declare_compare(parser& cmd) {
    const auto o = std::make_shared<compare_command>();
    declare_inputs(cmd, o->options.in);
    declare_roles(cmd, o->options.roles);
    cmd.group("Sweep");
    cmd.add_option(
        "-r,--recipe RECIPE", o->options.recipes,
        "recipe that the axes are applied to; repeatable; default: the presets of the elements");
    for (std::size_t i = 0; i < axis_rows.size(); ++i) {
        cmd.add_option(axis_rows[i].option, o->options.axes[i], axis_rows[i].help)->delimiter(',');
    }
    cmd.add_option("--draws N", o->options.seeds,
                   "recipes per cell with random numbers, with ascending seeds (5)")
        ->in_range(1, 1000);
    cmd.add_flag("--phase-sweep", o->options.phase_sweep,
                 fmt::format("also with the tensors times 2^(i/{}): how much a ranking depends on "
                             "their position in a binade",
                             compare::phase_count));
    cmd.add_flag("--regret", o->regret,
                 "also the share of the error that the best scales would save, for tensors of any "
                 "size: one more pass, under scale=search");
    cmd.add_flag("--no-regret", o->no_regret, "never measure it");
    declare_groups(cmd, o->options.groups);
    cmd.group("Ranking");
    cmd.add_option("--baseline RECIPE", o->options.baseline,
                   "recipe that R-MSEs are relative to (the first cell)");
    cmd.add_option("--top N", o->options.view.top, "cells shown (20); JSON has all")
        ->in_range(1, 1000000);
    cmd.add_flag("--layers", o->options.view.layers, "also the best cell of every layer");
    declare_measured_outputs(cmd, o->options, o->to, "compare");
    declare_run(cmd, o->to.run);
    cmd.description(
        "Ranks every combination of the given axes, in one pass over the file: R-MSE relative to "
        "a baseline as a geometric mean over tensors, wins, the Pareto front of bits against "
        "SQNR, the best cell by role and layer, and how often the bytes of scale rules differ. "
        "Axes are comma-separated lists; combinations that a format or dialect does not support "
        "are left out with the reason. The default is five elements under the rules floor, ceil, "
        "even and rceil, and the recipes of the policy, whose verdict --html has. CSV and "
        "'results' of JSON are the records of mx analyze.");
    cmd.examples(
        "mx compare model.safetensors\n"
        "mx compare model.safetensors --element e2m1 --scale floor,even,rceil --block 1x16,1x32\n"
        "mx compare model.safetensors -r mxfp4 -r nvfp4 --round rtne,stochastic --draws 8\n"
        "mx compare model.safetensors --role norm --layers --baseline mxfp8:scale=even\n"
        "mx compare model.safetensors --element e2m1 --phase-sweep --json sweep.json\n");
    return [o] { return run_compare(*o); };
}

}  // namespace mx::app
