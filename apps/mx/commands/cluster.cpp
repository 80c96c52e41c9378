// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/mx/commands.hpp"
#include "apps/mx/commands/review_page.hpp"
#include "apps/mx/commands/role_options.hpp"
#include "apps/mx/exit_code.hpp"
#include "apps/mx/input_records.hpp"
#include "apps/mx/options.hpp"
#include "apps/mx/outputs.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/pages/views/cluster_view.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/cluster/doctor.hpp"

namespace mx::app {

using pages::integer;
using pages::undefined;
namespace {

struct options {
    input_options in;
    output_options out;
    run_options run;
    role_options roles;
    std::vector<std::string> recipes;
    std::optional<double> fail_above;
    bool all = false;
    review_page_options page;
};

// The recipes asked for, each once: two spellings of one recipe are one.
std::vector<codec::recipe> recipes_of(std::vector<std::string> spellings) {
    if (spellings.empty()) spellings = {"mxfp8:scale=floor", "mxfp4:scale=floor"};
    return codec::parse_recipes(spellings);
}

// What became of all tensors, by recipe.
report::list health_list(const cluster::cluster_report& report,
                         const analysis::analysis_request& request) {
    report::list list;
    for (std::size_t r = 0; r < request.recipes.size(); ++r) {
        const cluster::recipe_health& h = report.health[r];
        report::value nearest = undefined();
        if (h.nearest) {
            nearest = report::record{{"tensor", h.nearest_tensor},
                                     {"block", integer(h.nearest->index)},
                                     {"min", h.nearest->least},
                                     {"max", h.nearest->largest},
                                     {"nearness", h.nearest->nearness}};
        }
        list.emplace_back(report::record{{"recipe", codec::to_string(request.recipes[r])},
                                         {"tensors", integer(h.tensors)},
                                         {"judged", integer(h.judged)},
                                         {"in_danger", integer(h.in_danger)},
                                         {"nearest", std::move(nearest)}});
    }
    return list;
}

report::list norms_around_zero(const cluster::norm_centres& norms) {
    report::list list;
    for (const std::string& name : norms.around_zero) list.emplace_back(name);
    return list;
}

// The sentence for the record with the largest rate above `limit`, or for no rate at all; empty
// when there is nothing to say.
std::string failure_of(const report::record_list& results, double limit) {
    std::string said = "--fail-above has nothing to check: no tensor has a block that can saturate";
    bool any = false;
    double worst = limit;
    for (const report::record& r : results) {
        const auto* rate = std::get_if<double>(report::find(r, "saturated_block_rate"));
        if (rate != nullptr && !any) said.clear();
        any = any || rate != nullptr;
        if (rate == nullptr || *rate <= worst) continue;
        said = fmt::format("{} under {}: {} % of the blocks saturate, more than --fail-above {}",
                           std::get<std::string>(*report::find(r, "tensor")),
                           std::get<std::string>(*report::find(r, "recipe")),
                           report::percent_text(*rate), limit);
        worst = *rate;
    }
    return said;
}

int run(const options& o) {
    analysis::analysis_request request;
    request.recipes = recipes_of(o.recipes);
    request.roles = finder_of(o.roles);
    request.norm_bias = o.roles.norm_bias;
    const engine::run_control control = control_of(o.run);
    outputs to(o.out, o.in.files);
    request.distributions = to.wants("html");
    input_options in = o.in;
    in.views.vectors = true;  // gains are vectors, however many axes of length 1 they have
    const engine::model model = open_inputs(in);
    to.check_inputs(paths_of(model, {}));
    cluster::cluster_report report = cluster::examine(
        with_roles(model.select(o.in.globs), o.roles, request.roles), request, control);
    engine::require_any(analysis::has_elements(report.measured), report.skipped);
    const std::string failure =
        o.fail_above ? failure_of(report.results, *o.fail_above) : std::string();

    report::document d;
    d.sections = pages::cluster_sections(report, request, o.all);
    d.head = pages::document_head("mx.analysis/1");
    d.head.emplace_back("inputs", input_list(model, o.page.sha256 || request.distributions));
    report::list findings;
    for (const cluster::finding& f : report.findings) {
        findings.emplace_back(cluster::finding_record(f, request.roles));
    }
    d.tail.emplace_back("findings", std::move(findings));
    d.tail.emplace_back("health", health_list(report, request));
    d.tail.emplace_back("norms_around_zero", norms_around_zero(report.norms));
    d.tail.emplace_back("skipped", skipped_list(report.skipped));
    if (request.distributions) d.tail.emplace_back("distributions", report.sums.members());
    d.results = std::move(report.results);
    finish_with_page(to, d, report.measured, o.page, o.run.quiet);
    if (failure.empty()) return exit_code::fine;
    remark(failure);
    return exit_code::difference;
}

}  // namespace

runner declare_cluster(parser& cmd) {
    const auto o = std::make_shared<options>();
    declare_inputs(cmd, o->in);
    declare_roles(cmd, o->roles);
    cmd.add_option("-r,--recipe", o->recipes,
                   "what to quantize to (mxfp8:scale=floor and mxfp4:scale=floor); repeatable")
        ->allow_extra_args(false)
        ->type_name("RECIPE")
        ->group("Diagnosis");
    cmd.add_option("--fail-above", o->fail_above,
                   "exit with 1 when more than this share (0 to 1) of any tensor's blocks saturate "
                   "under any of the recipes")
        ->finite()
        ->in_range(0.0, 1.0)
        ->type_name("RATE")
        ->group("Diagnosis");
    cmd.add_flag("--all", o->all, "show every finding instead of the ten worst")
        ->group("Diagnosis");
    declare_outputs(cmd, o->out);
    declare_page(cmd, o->page);
    declare_run(cmd, o->run);
    cmd.description(
        "Finds the tensors whose blocks lose what told their elements apart: values so close "
        "together, and so placed in their binade, that all of them take the largest code "
        "(saturate), become zero (die) or get one magnitude (collapse). Says why, and measures "
        "what would mend each: the scale rules rceil and floor-bump, an offset, a smaller block, "
        "bf16. A tensor with one axis longer than 1, as 1x512x1, is read as the vector it is.");
    examples(cmd,
             "mx cluster model.safetensors\n"
             "mx cluster model.safetensors --role norm --norm-bias 1\n"
             "mx cluster model.safetensors -r mxfp8:scale=floor,axis=flat --json findings.json\n"
             "mx cluster model.safetensors --fail-above 0.01 --quiet\n");
    return [o] { return run(*o); };
}

}  // namespace mx::app
