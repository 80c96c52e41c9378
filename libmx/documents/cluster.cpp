// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "libmx/documents/studies.hpp"
#include "libmx/pages/views/cluster_view.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/members.hpp"
#include "libmx/studies/cluster/diagnose.hpp"

namespace mx::documents {
namespace {

constexpr std::array cluster_recipes{"mxfp8:scale=floor", "mxfp4:scale=floor"};

struct nearest_block {
    const std::string& tensor;
    const cluster::near_block& b;
};
constexpr std::array nearest_members = std::to_array<report::declared<nearest_block>>({
    {"tensor", "string", "", [](auto& x) { return x.tensor; }},
    {"block", "count", "", [](auto& x) { return x.b.index; }},
    {"min", "amount", "", [](auto& x) { return x.b.least; }},
    {"max", "amount", "", [](auto& x) { return x.b.largest; }},
    {"nearness", "number", "1: saturates", [](auto& x) { return x.b.nearness; }},
});

struct recipe_health {
    const codec::recipe& recipe;
    const cluster::recipe_summary& of;
};
constexpr std::array health_members = std::to_array<report::declared<recipe_health>>({
    {"recipe", "string", "", [](auto& h) { return codec::to_string(h.recipe); }},
    {"tensors", "count", "measured", [](auto& h) { return h.of.tensors; }},
    {"judged", "count", "with eligible blocks", [](auto& h) { return h.of.judged; }},
    {"in_danger", "count", "with a finding", [](auto& h) { return h.of.in_danger; }},
    {"nearest", "#nearest?", "the block closest to saturation, in tensors without a finding",
     [](auto& h) -> report::value {
         if (!h.of.nearest) return {};
         return report::written(nearest_members, {h.of.nearest_tensor, *h.of.nearest});
     }},
});

struct diagnosis {
    const cluster::cluster_report& report;
    const analysis::analysis_request& request;
};
constexpr std::array diagnosis_members = std::to_array<report::declared<diagnosis>>({
    {"findings", "[#finding]",
     "a tensor under a recipe that loses blocks each, the most severe first",
     [](auto& d) {
         return report::to_list(d.report.findings, [&](const cluster::finding& f) {
             return cluster::finding_record(f, d.request.roles);
         });
     }},
    {"health", "[#health]", "a recipe over all tensors each",
     [](auto& d) {
         report::list all;
         for (std::size_t r = 0; r < d.request.recipes.size(); ++r) {
             all.emplace_back(
                 report::written(health_members, {d.request.recipes[r], d.report.summaries[r]}));
         }
         return all;
     }},
    {"norms_around_zero", "[string]", "norms that look as if they were stored as gain - 1",
     [](auto& d) { return report::to_list(d.report.norms.around_zero); }},
});

void put_before(std::vector<codec::recipe>& recipes, std::vector<codec::recipe> first) {
    for (const codec::recipe& r : recipes) {
        if (std::find(first.begin(), first.end(), r) == first.end()) first.push_back(r);
    }
    recipes = std::move(first);
}

}  // namespace

measured cluster(const cluster_options& o, const run_environment& environment) {
    analysis::analysis_request request;
    if (!o.recipes.empty()) request.recipes = codec::parse_block_recipes(o.recipes);
    const measured_model m("cluster", o, request, environment);
    // Without --recipe: the rule that clamps, then what the policy judges.
    if (o.recipes.empty()) {
        put_before(request.recipes,
                   codec::parse_block_recipes({cluster_recipes.begin(), cluster_recipes.end()}));
    }
    cluster::cluster_report report = cluster::diagnose(m.opened.tensors, request, m.control);
    report::document d;
    if (m.is_part()) {
        d.results = std::move(report.results);
        return m.finish(std::move(d), report.measured, report.skipped, report.sums, false);
    }
    engine::require_any(analysis::has_elements(report.measured), report.skipped);

    d.sections = pages::cluster_sections(report, request, o.all);
    d.tail = report::written(diagnosis_members, {report, request});
    d.results = std::move(report.results);
    return m.finish(std::move(d), report.measured, report.skipped, report.sums, false);
}

void declare_diagnosis(report::document_schema& to) {
    to.members_together(diagnosis_members)
        .define("health", health_members)
        .define("nearest", nearest_members);
}

}  // namespace mx::documents
