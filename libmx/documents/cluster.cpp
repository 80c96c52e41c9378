// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
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
    {"saturating_tensors", "count", "with a saturated block",
     [](auto& h) { return h.of.saturating_tensors; }},
    {"eligible_blocks", "count", "of all tensors", [](auto& h) { return h.of.eligible; }},
    {"saturated_blocks", "count", "of these", [](auto& h) { return h.of.saturated; }},
    {"nearest", "#nearest?", "the block closest to saturation, in tensors without a finding",
     [](auto& h) -> report::value {
         if (!h.of.nearest) return {};
         return report::written(nearest_members, {h.of.nearest_tensor, *h.of.nearest});
     }},
});

constexpr std::array unjudged_members = std::to_array<report::declared<cluster::unjudged_tensor>>({
    {"tensor", "string", "", [](auto& u) { return u.tensor; }},
    {"recipe", "string", "", [](auto& u) { return u.recipe; }},
});

// Of a result over a group of several tensors, some of which are in danger.
constexpr std::array group_members = std::to_array<report::declared<report::record>>({
    {"tensor", "string", "the group", [](auto& r) { return report::value_of(r, "tensor"); }},
    {"recipe", "string", "", [](auto& r) { return report::value_of(r, "recipe"); }},
    {"members", "count", "tensors", [](auto& r) { return report::value_of(r, "members"); }},
    {"members_in_danger", "count", "",
     [](auto& r) { return report::value_of(r, "members_in_danger"); }},
    {"saturated_block_rate", "@members#saturated_block_rate", "",
     [](auto& r) { return report::value_of(r, "saturated_block_rate"); }},
    {"most_saturated_block_rate", "share?", "of the worst tensor",
     [](auto& r) { return report::value_of(r, "most_saturated_block_rate"); }},
    {"most_saturated_member", "string?", "the worst tensor",
     [](auto& r) { return report::value_of(r, "most_saturated_member"); }},
});

report::list groups_in_danger(const report::record_list& results) {
    std::vector<std::pair<double, report::record>> found;
    for (const report::record& r : results) {
        const double in_danger = report::number_of(r, "members_in_danger").value_or(0);
        const double members = report::number_of(r, "members").value_or(0);
        if (members > 1 && in_danger > 0) found.emplace_back(in_danger / members, r);
    }
    std::ranges::stable_sort(found, std::greater{}, [](const auto& f) { return f.first; });
    return report::to_list(found,
                           [](const auto& f) { return report::written(group_members, f.second); });
}

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
    {"groups_in_danger", "[#danger]",
     "groups with tensors in danger, the largest share of them first; mx cluster --group",
     [](auto& d) { return groups_in_danger(d.report.results); }},
    {"unjudged", "[#unjudged]",
     "tensors of several blocks, not all zero, none with two non-zero elements",
     [](auto& d) { return report::listed(unjudged_members, d.report.unjudged); }},
    {"norms", "count", "norms with values", [](auto& d) { return d.report.norms.norms; }},
    {"norms_around_zero", "[string]", "norms that look as if they were stored as gain - 1",
     [](auto& d) { return report::to_list(d.report.norms.around_zero); }},
    {"needs_norm_bias", "boolean", "most norms look like that, and --norm-bias was not given",
     [](auto& d) {
         return d.request.norm_bias == 0 && d.report.norms.look_like_gamma_minus_one();
     }},
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
    const measuring_session m("cluster", o, request, environment);
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

    d.tail = report::written(diagnosis_members, {report, request});
    d.results = std::move(report.results);
    return m.finish(std::move(d), report.measured, report.skipped, report.sums, false,
                    [&](const pages::result_set& of) { return pages::cluster_view(of, o.all); });
}

void declare_diagnosis(report::document_schema& to) {
    to.members_together(diagnosis_members)
        .define("health", health_members)
        .define("danger", group_members)
        .define("unjudged", unjudged_members)
        .define("nearest", nearest_members);
}

}  // namespace mx::documents
