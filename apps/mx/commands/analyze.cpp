// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/build_facts.hpp"
#include "apps/mx/commands/analyze_exact.hpp"
#include "apps/mx/parts.hpp"
#include "apps/mx/review_page.hpp"
#include "libmx/documents/studies.hpp"

namespace mx::app {
namespace {

struct analyze_command {
    documents::analyze_options options;
    measured_outputs to;
    bool exact = false;
};

int run_analyze(analyze_command o) {
    if (o.exact && !has_oracle) {
        throw base::error(
            base::error_kind::unavailable,
            "--exact: this build is without the oracle; configure with MX_BUILD_TESTS=ON");
    }
    if (o.exact) o.options.recompute = make_exact;
    const part_options& parts = o.options.parts;
    if ((o.exact || !o.options.blocks.empty()) && !(parts.shard.empty() && parts.merged.empty())) {
        refuse("--exact and --blocks cannot be had in parts: leave --shard out");
    }
    if (o.exact && !o.options.groups.empty()) {
        refuse("--exact computes tensor by tensor: leave --group out");
    }
    std::vector<std::string> more;
    if (!o.options.blocks.empty()) more.push_back(o.options.blocks);
    measured_run run(o.options, o.to, more);
    run.finish(documents::analyze(o.options, run.environment()));
    return exit_code::fine;
}

}  // namespace

runner declare_analyze(parser& cmd) {
    const auto o = std::make_shared<analyze_command>();
    declare_inputs(cmd, o->options.in);
    declare_roles(cmd, o->options.roles);
    cmd.group("Analysis");
    cmd.add_option("-r,--recipe RECIPE", o->options.recipes,
                   "recipe to quantize to, e.g. mxfp4:scale=even; repeatable (what the policy "
                   "judges, and what inference uses today: bf16, "
                   "e4m3:scale=tensor, int8:scale=channel)");
    cmd.add_flag("--histograms", o->options.histograms,
                 "also histograms of codes, scales, block maxima and block spread (JSON)");
    cmd.add_flag("--decompose", o->options.decompose,
                 "also the squared error by cause: clamping, underflow, rounding on the grid; "
                 "always of files with gradients");
    cmd.add_flag("--regret", o->options.regret,
                 "also the share of the error that the best scales would save: one more pass, "
                 "under scale=search");
    cmd.add_flag("--exact", o->exact,
                 "compute the figures in exact rationals, one tensor in memory at a time; slow");
    cmd.add_flag("--all", o->options.view.all, "show every tensor, in the order of the file");
    cmd.add_option("--worst N", o->options.view.worst,
                   "show the N tensors with the largest error relative to normal data")
        ->in_range(1, 1000000);
    declare_groups(cmd, o->options.groups);
    declare_measured_outputs(cmd, o->options, o->to, "analyze");
    cmd.add_option("--blocks OUT.h5", o->options.blocks,
                   "per-block scale codes, amax, counts and squared errors, as HDF5")
        ->file_name();
    declare_run(cmd, o->to.run);
    cmd.description(
        "Measures the effect of quantization on every tensor, in one pass over the file for any "
        "number of recipes, and recommends what to ship: a recipe for each class of tensors, what "
        "keeps its precision, the cost, the risks, and what was not measured. The default recipes "
        "are those of the policy (mx explain policy); for weights mxfp8:scale=rceil, "
        "mxfp6:scale=even, nvfp4 and mxfp4:scale=even. JSON, CSV and Markdown list every tensor.");
    cmd.examples(
        "mx analyze model.safetensors\n"
        "mx analyze model.safetensors --target b200 --html review.html\n"
        "mx analyze model.safetensors --summary\n"
        "mx analyze model.safetensors --recipe mxfp4:scale=even --recipe mxfp4:block=1x16\n"
        "mx analyze model.safetensors.index.json --tensor '*norm*' --json norms.json\n"
        "mx analyze moe/ --group 'experts.*' --json results.json\n"
        "mx analyze weights.npz --recipe mxfp8 --csv - --quiet\n");
    return [o] { return run_analyze(*o); };
}

}  // namespace mx::app
