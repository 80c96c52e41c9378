// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/analyze.hpp"
#include "apps/mx/build_facts.hpp"
#include "apps/mx/commands/analyze_exact.hpp"
#include "apps/mx/review_page.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/pages/views/analysis_view.hpp"

namespace mx::app {
namespace {

struct analyze_options : measuring_options {
    pages::view_options view;
    std::string blocks;
    bool histograms = false;
    bool decompose = false;
    bool exact = false;
};

int run_analyze(const analyze_options& o) {
    if (o.exact && !has_oracle) {
        throw base::error(
            base::error_kind::unavailable,
            "--exact: this build is without the oracle; configure with MX_BUILD_TESTS=ON");
    }
    analysis::analysis_request request;
    if (!o.recipes.empty()) request.recipes = codec::parse_recipes(o.recipes);
    request.histograms = o.histograms;
    request.distributions = o.histograms;
    request.blocks_path = o.blocks;
    std::vector<std::string> more;
    if (!o.blocks.empty()) more.push_back(o.blocks);
    measured_model m(o, request, more);
    request.decompose = o.decompose || m.has_page();
    if (!o.blocks.empty() && m.control.backend->takes != nullptr) {
        m.control.notices->detail(fmt::format(
            "--blocks: by backend scalar, as backend {} has no kernels for what it writes",
            m.control.backend->name));
    }
    analysis::analysis a = analysis::analyze(m.tensors, request, m.control);
    engine::require_any(analysis::has_elements(a.results), a.skipped);
    if (o.exact) make_exact(a, m.tensors, request, m.control);

    const std::vector<pages::recipe_summary> summary = pages::summarize(a.results);
    report::document d;
    d.sections = pages::analysis_sections(a, summary, o.view);
    d.tail.emplace_back("summary", to_list(summary, [](const auto& s) { return s.members; }));
    d.results = records_of(a.results);
    m.finish(std::move(d), a.results, a.skipped, a.sums, true);
    return exit_code::fine;
}

}  // namespace

runner declare_analyze(parser& cmd) {
    const auto o = std::make_shared<analyze_options>();
    declare_inputs(cmd, o->in);
    declare_roles(cmd, o->roles);
    cmd.group("Analysis");
    cmd.add_option(
        "-r,--recipe RECIPE", o->recipes,
        "what to quantize to, e.g. mxfp4:scale=even; repeatable (what the policy judges)");
    cmd.add_flag("--histograms", o->histograms,
                 "also histograms of codes, scales, block maxima and block spread (JSON)");
    cmd.add_flag("--decompose", o->decompose,
                 "also the squared error by origin: clamping, underflow, rounding on the grid");
    cmd.add_flag("--exact", o->exact,
                 "compute the figures in exact rationals, one tensor in memory at a time; slow");
    cmd.add_flag("--all", o->view.all, "show every tensor, in the order of the file");
    cmd.add_option("--worst N", o->view.worst, "show the N tensors that lose most elements")
        ->in_range(1, 1000000);
    declare_measured_outputs(cmd, *o);
    cmd.add_option("--blocks OUT.h5", o->blocks,
                   "per-block scale codes, amax, counts and squared errors, as HDF5")
        ->file_name();
    declare_run(cmd, o->run);
    cmd.description(
        "Measures what quantization does to every tensor, in one pass over the file however many "
        "recipes are asked for, and says what to ship: a recipe for each class of tensors, what "
        "keeps its precision, the cost, the risks, and what was not measured. Without --recipe: "
        "what the policy judges, of which mx explain policy prints the rules; for weights "
        "mxfp8:scale=rceil, mxfp6:scale=even, nvfp4 and mxfp4:scale=even. JSON, CSV and Markdown "
        "hold every tensor.");
    cmd.examples(
        "mx analyze model.safetensors\n"
        "mx analyze model.safetensors --target b200 --html review.html\n"
        "mx analyze model.safetensors --summary\n"
        "mx analyze model.safetensors --recipe mxfp4:scale=even --recipe mxfp4:block=1x16\n"
        "mx analyze model.safetensors.index.json --tensor '*norm*' --json norms.json\n"
        "mx analyze weights.npz --recipe mxfp8 --csv - --quiet\n");
    return [o] { return run_analyze(*o); };
}

}  // namespace mx::app
