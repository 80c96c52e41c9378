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

// Counts over all tensors, by recipe.
report::list health_list(const cluster::cluster_report& report,
                         const analysis::analysis_request& request) {
    report::list list;
    for (std::size_t r = 0; r < request.recipes.size(); ++r) {
        const cluster::recipe_summary& h = report.summaries[r];
        report::value nearest = pages::undefined();
        if (h.nearest) {
            nearest = report::record{{"tensor", h.nearest_tensor},
                                     {"block", pages::integer(h.nearest->index)},
                                     {"min", h.nearest->least},
                                     {"max", h.nearest->largest},
                                     {"nearness", h.nearest->nearness}};
        }
        list.emplace_back(report::record{{"recipe", codec::to_string(request.recipes[r])},
                                         {"tensors", pages::integer(h.tensors)},
                                         {"judged", pages::integer(h.judged)},
                                         {"in_danger", pages::integer(h.in_danger)},
                                         {"nearest", std::move(nearest)}});
    }
    return list;
}

void put_before(std::vector<codec::recipe>& recipes, std::vector<codec::recipe> first) {
    for (const codec::recipe& r : recipes) {
        if (std::find(first.begin(), first.end(), r) == first.end()) first.push_back(r);
    }
    recipes = std::move(first);
}

}  // namespace

measured cluster(const cluster_options& o, const surroundings& around) {
    analysis::analysis_request request;
    if (!o.recipes.empty()) request.recipes = codec::parse_block_recipes(o.recipes);
    const measured_model m("cluster", o, request, around);
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
    d.tail = {{"findings", report::to_list(report.findings,
                                           [&](const cluster::finding& f) {
                                               return cluster::finding_record(f, request.roles);
                                           })},
              {"health", health_list(report, request)},
              {"norms_around_zero",
               report::list(report.norms.around_zero.begin(), report.norms.around_zero.end())}};
    d.results = std::move(report.results);
    return m.finish(std::move(d), report.measured, report.skipped, report.sums, false);
}

}  // namespace mx::documents
