// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "libmx/analysis/regret.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/policy/offers.hpp"

namespace mx::documents {

measured analyze(const analyze_options& o, const run_environment& environment) {
    analysis::analysis_request request;
    if (!o.recipes.empty()) request.recipes = codec::parse_recipes(o.recipes);
    request.histograms = o.histograms;
    request.distributions = o.histograms;
    request.blocks_path = o.blocks;
    const bool blocks_only = o.recompute || !o.blocks.empty();
    const measuring_session m("analyze", o, request, environment, !blocks_only);
    if (blocks_only) std::ranges::for_each(request.recipes, codec::require_blocks);
    // Policies limit the part of a gradient's error that is underflow.
    const bool gradients = std::ranges::any_of(m.opened.tensors, [&](const engine::tensor_ref& t) {
        return request.roles.role_of(t.info()) == "gradient";
    });
    request.decompose = o.decompose || o.page || o.parts.page_sums || gradients;
    analysis::analysis a = analysis::analyze(m.opened.tensors, request, m.control);
    if (!m.is_part()) engine::require_any(analysis::has_elements(a.results), a.skipped);
    if (o.recompute) o.recompute(a, m.opened.tensors, request, m.control);
    const bool cheap = analysis::regret_cost(m.opened.tensors, request) <= analysis::cheap_regret;
    if (!m.is_part() && (o.regret || (o.page && cheap))) {
        analysis::add_regrets(a.results, m.opened.tensors, request, m.control);
    }

    const std::vector<pages::recipe_summary> summary = pages::summarize(a.results);
    report::document d;
    // Nobody asked for today's formats: they stand beside the recommended recipe of each class.
    std::vector<pages::recipe_summary> shown = summary;
    if (o.recipes.empty()) {
        const std::vector<codec::recipe> today = policy::baselines();
        std::erase_if(shown, [&](const pages::recipe_summary& s) {
            return std::ranges::find(today, s.under->recipe) != today.end();
        });
    }
    if (!m.is_part()) d.sections = pages::analysis_sections(a, shown, o.view);
    d.tail.emplace_back("summary",
                        report::to_list(summary, [](const auto& s) { return s.members; }));
    d.results = records_of(a.results);
    return m.finish(std::move(d), a.results, a.skipped, a.sums, true);
}

}  // namespace mx::documents
