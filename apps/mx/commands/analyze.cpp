// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <memory>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/exact.hpp"
#include "apps/mx/commands/review_page.hpp"
#include "apps/mx/commands/role_options.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/input_records.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "libmx/analysis/analyze.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/pages/views/analysis_view.hpp"
#include "libmx/pages/views/values.hpp"

namespace mx::app {
namespace {

// Without --recipe: the OCP formats under the three scale rules in use.
constexpr std::array default_presets{"mxfp8", "mxfp6", "mxfp4"};
constexpr std::array default_rules{"floor", "even", "rceil"};

struct options {
    input_options in;
    output_options out;
    run_options run;
    pages::view_options view;
    role_options roles;
    std::vector<std::string> recipes;
    std::string blocks;
    bool histograms = false;
    bool decompose = false;
    bool exact = false;
    review_page_options page;
};

// The recipes asked for, each once: two spellings of one recipe are one.
std::vector<codec::recipe> recipes_of(const options& o) {
    std::vector<std::string> spellings = o.recipes;
    if (spellings.empty()) {
        for (const std::string_view preset : default_presets) {
            for (const std::string_view rule : default_rules) {
                spellings.push_back(fmt::format("{}:scale={}", preset, rule));
            }
        }
    }
    return codec::parse_recipes(spellings);
}

int run(const options& o) {
    if (o.exact) require_oracle();
    analysis::analysis_request request;
    request.recipes = recipes_of(o);
    request.histograms = o.histograms;
    request.blocks_path = o.blocks;
    request.roles = finder_of(o.roles);
    request.norm_bias = o.roles.norm_bias;
    std::vector<std::string> more;
    if (!o.blocks.empty()) more.push_back(o.blocks);
    const engine::run_control control = control_of(o.run);
    outputs to(o.out, o.in.files, more);
    const bool page = to.wants("html");
    request.decompose = o.decompose || page;
    request.distributions = o.histograms || page;
    const engine::model model = open_inputs(o.in);
    to.check_inputs(paths_of(model, {}));
    const std::vector<engine::tensor_ref> tensors =
        with_roles(model.select(o.in.globs), o.roles, request.roles);
    analysis::analysis a = analysis::analyze(tensors, request, control);
    engine::require_any(analysis::has_elements(a.results), a.skipped);
    if (o.exact) make_exact(a, tensors, request, control);

    const std::vector<pages::recipe_summary> summary = pages::summarize(a.results);
    report::document d;
    d.sections = pages::analysis_sections(a, summary, o.view);
    d.head = pages::document_head("mx.analysis/1");
    d.head.emplace_back("inputs", input_list(model, o.page.sha256 || page));
    report::list totals;
    for (const pages::recipe_summary& s : summary) totals.emplace_back(s.members);
    d.tail.emplace_back("summary", std::move(totals));
    d.tail.emplace_back("skipped", skipped_list(a.skipped));
    if (request.distributions) d.tail.emplace_back("distributions", a.sums.members());
    d.results = records_of(a.results);
    finish_with_page(to, d, a.results, o.page, o.run.quiet);
    return exit_code::fine;
}

}  // namespace

runner declare_analyze(parser& cmd) {
    const auto o = std::make_shared<options>();
    declare_inputs(cmd, o->in);
    declare_roles(cmd, o->roles);
    cmd.add_option("-r,--recipe", o->recipes,
                   "what to quantize to, e.g. mxfp4:scale=even; repeatable")
        ->allow_extra_args(false)
        ->type_name("RECIPE")
        ->group("Analysis");
    cmd.add_flag("--histograms", o->histograms,
                 "also histograms of codes, scales, block maxima and block spread (JSON)")
        ->group("Analysis");
    cmd.add_flag("--decompose", o->decompose,
                 "also the squared error by origin: clamping, underflow, rounding on the grid")
        ->group("Analysis");
    cmd.add_flag("--exact", o->exact,
                 "compute the figures in exact rationals, one tensor in memory at a time; slow")
        ->group("Analysis");
    cmd.add_flag("--all", o->view.all, "show every tensor, in the order of the file")
        ->group("Analysis");
    cmd.add_option("--worst", o->view.worst, "show the N tensors with the largest relative error")
        ->in_range(1, 1000000)
        ->type_name("N")
        ->group("Analysis");
    declare_outputs(cmd, o->out);
    declare_page(cmd, o->page);
    cmd.add_option("--blocks", o->blocks,
                   "per-block scale codes, amax, counts and squared errors, as HDF5")
        ->file_name()
        ->type_name("OUT.h5")
        ->group("Output");
    declare_run(cmd, o->run);
    cmd.description(
        "Measures what quantization does to every tensor, in one pass over the file however many "
        "recipes are asked for. Without --recipe: mxfp8, mxfp6 and mxfp4, each with the scale "
        "rules floor, even and rceil, and a verdict in words. JSON, CSV and Markdown hold every "
        "tensor.");
    examples(cmd,
             "mx analyze model.safetensors\n"
             "mx analyze model.safetensors --recipe mxfp4:scale=even --recipe mxfp4:block=1x16\n"
             "mx analyze model.safetensors.index.json --tensor '*norm*' --json norms.json\n"
             "mx analyze weights.npz --recipe mxfp8 --csv - --quiet\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app
