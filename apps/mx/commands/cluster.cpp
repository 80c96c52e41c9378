// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "apps/mx/fail_above.hpp"
#include "apps/mx/review_page.hpp"
#include "apps/mx/terminal.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/pages/views/cluster_view.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/cluster/diagnose.hpp"

namespace mx::app {
namespace {

constexpr std::array cluster_recipes{"mxfp8:scale=floor", "mxfp4:scale=floor"};

struct cluster_options : measuring_options {
    std::optional<double> fail_above;
    bool all = false;
};

// What became of all tensors, by recipe.
report::list health_list(const cluster::cluster_report& report,
                         const analysis::analysis_request& request) {
    report::list list;
    for (std::size_t r = 0; r < request.recipes.size(); ++r) {
        const cluster::recipe_summary& h = report.summaries[r];
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

// The sentence for the largest rate above `limit`, or for nothing to check; empty when there is
// nothing to say.
std::string failure_of(const cluster::cluster_report& report, double limit) {
    const limit_check check = check_limit(report.results, {"", "saturated_block_rate", limit});
    if (check.worst) {
        return fmt::format("{} under {}: {} % of the blocks saturate, more than --fail-above {}",
                           report::text_of(*check.worst, "tensor"),
                           report::text_of(*check.worst, "recipe"),
                           report::percent_text(check.value), limit);
    }
    const bool judged = std::ranges::any_of(
        report.summaries, [](const cluster::recipe_summary& s) { return s.judged > 0; });
    return judged ? ""
                  : "--fail-above has nothing to check: no tensor has a block that can saturate";
}

void put_before(std::vector<codec::recipe>& recipes, std::vector<codec::recipe> first) {
    for (const codec::recipe& r : recipes) {
        if (std::ranges::find(first, r) == first.end()) first.push_back(r);
    }
    recipes = std::move(first);
}

int run_cluster(const cluster_options& o) {
    analysis::analysis_request request;
    if (!o.recipes.empty()) request.recipes = codec::parse_recipes(o.recipes);
    measured_model m(o, request);
    // Without --recipe: behind the rule that clamps, what the policy judges.
    if (o.recipes.empty()) put_before(request.recipes, recipes_of({}, cluster_recipes));
    cluster::cluster_report report = cluster::diagnose(m.tensors, request, m.control);
    engine::require_any(analysis::has_elements(report.measured), report.skipped);
    const std::string failure = o.fail_above ? failure_of(report, *o.fail_above) : std::string();

    report::document d;
    d.sections = pages::cluster_sections(report, request, o.all);
    d.tail = {{"findings", to_list(report.findings,
                                   [&](const cluster::finding& f) {
                                       return cluster::finding_record(f, request.roles);
                                   })},
              {"health", health_list(report, request)},
              {"norms_around_zero",
               report::list(report.norms.around_zero.begin(), report.norms.around_zero.end())}};
    d.results = std::move(report.results);
    m.finish(std::move(d), report.measured, report.skipped, report.sums, o.recipes.empty());
    if (failure.empty()) return exit_code::fine;
    remark(failure);
    return exit_code::difference;
}

}  // namespace

runner declare_cluster(parser& cmd) {
    const auto o = std::make_shared<cluster_options>();
    o->in.views.vectors = true;  // gains are vectors, however many axes of length 1 they have
    declare_inputs(cmd, o->in);
    declare_roles(cmd, o->roles);
    cmd.group("Diagnosis");
    cmd.add_option("-r,--recipe RECIPE", o->recipes,
                   "what to quantize to (mxfp8:scale=floor, mxfp4:scale=floor and what the policy "
                   "judges); repeatable");
    cmd.add_option("--fail-above RATE", o->fail_above,
                   "exit with 1 when more than this share (0 to 1) of any tensor's blocks saturate "
                   "under any of the recipes")
        ->finite()
        ->in_range(0.0, 1.0);
    cmd.add_flag("--all", o->all, "show every finding instead of the ten worst");
    declare_measured_outputs(cmd, *o);
    declare_run(cmd, o->run);
    cmd.description(
        "Finds the tensors whose blocks lose what told their elements apart: values so close "
        "together, and so placed in their binade, that all of them take the largest code "
        "(saturate), become zero (die) or get one magnitude (collapse). Says why, and measures "
        "what would mend each: the scale rules rceil and floor-bump, an offset, a smaller block, "
        "bf16. A tensor with one axis longer than 1, as 1x512x1, is read as the vector it is.");
    cmd.examples(
        "mx cluster model.safetensors\n"
        "mx cluster model.safetensors --role norm --norm-bias 1\n"
        "mx cluster model.safetensors -r mxfp8:scale=floor,axis=flat --json findings.json\n"
        "mx cluster model.safetensors --fail-above 0.01 --quiet\n");
    return [o] { return run_cluster(*o); };
}

}  // namespace mx::app
