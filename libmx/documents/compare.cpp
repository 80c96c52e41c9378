// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "libmx/analysis/regret.hpp"
#include "libmx/documents/compare_words.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/judge.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::documents {
namespace {

using namespace compare;

// Without --recipe: the elements of the OCP formats under the rules that the literature compares.
constexpr std::array default_elements{"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"};
constexpr std::array default_rules{"floor", "ceil", "even", "rceil"};
// Replaced by the axis of elements.
constexpr const char* blank_recipe = "mxfp8";

const std::vector<std::string>& values_of(const compare_options& o, std::string_view key) {
    std::size_t i = 0;
    while (sweep_keys[i] != key) ++i;
    return o.axes[i];
}

sweep_request request_of(const compare_options& o) {
    sweep_request request{o.recipes, {}, o.baseline, o.seeds};
    for (std::size_t i = 0; i < sweep_keys.size(); ++i) {
        request.axes.push_back({std::string(sweep_keys[i]), o.axes[i]});
    }
    if (!o.recipes.empty()) return request;
    request.bases = {blank_recipe};
    // A dialect or another scale format has its own rules.
    const bool own_rules =
        !values_of(o, "dialect").empty() || !values_of(o, "scale_format").empty();
    for (axis& a : request.axes) {
        if (!a.values.empty()) continue;
        if (a.key == "element") a.values.assign(default_elements.begin(), default_elements.end());
        if (a.key == "scale" && !own_rules) {
            a.values.assign(default_rules.begin(), default_rules.end());
        }
    }
    return request;
}

// Without a sweep of the user: what the verdict needs is measured as well.
bool by_default(const compare_options& o) {
    return o.recipes.empty() &&
           std::all_of(o.axes.begin(), o.axes.end(), [](const auto& a) { return a.empty(); });
}

// The operands of products, where the user chose no tensors: gains and biases are many, and are not
// quantized.
ranked_tensors ranked_of(const compare_options& o, const measuring_session& m) {
    if (!o.in.globs.empty() || !o.roles.roles.empty()) return {};
    const std::vector<policy::measured_tensor> all = described(m.opened.tensors, m.request.roles);
    std::optional<policy::policy> stated;
    if (!o.judging.policy.empty()) stated = policy_of(o.judging.policy);
    const policy::policy by = policy::policy_for(stated, all);
    std::set<std::pair<std::string, std::string>> operands;
    for (const policy::measured_tensor& t : all) {
        if (policy::why_kept(t, by.role_of(t.role, t.name), by).empty()) {
            operands.emplace(t.file, t.name);
        }
    }
    return [operands = std::move(operands)](const analysis::tensor_identity& t) {
        return operands.contains({t.file, t.tensor});
    };
}

}  // namespace

measured compare(const compare_options& o, const run_environment& environment) {
    sweep_request sweep = request_of(o);
    sweep_plan plan = plan_sweep(sweep);
    const bool verdict = by_default(o);
    analysis::analysis_request request;
    if (!verdict) request = compare::request_of(plan, o.phase_sweep);
    const measuring_session m("compare", o, request, environment);
    if (verdict) {
        sweep.more = request.recipes;
        plan = plan_sweep(sweep);
        const analysis::analysis_request planned = compare::request_of(plan, o.phase_sweep);
        request.recipes = planned.recipes;
        request.factors = planned.factors;
        request.scale_groups = planned.scale_groups;
        request.decompose = planned.decompose;
    }
    analysis::analysis a = analysis::analyze(m.opened.tensors, request, m.control);
    report::document d;
    if (m.is_part()) {
        d.results = records_of(a.results);
        return m.finish(std::move(d), a.results, a.skipped, a.sums, false);
    }
    engine::require_any(analysis::has_elements(a.results), a.skipped);
    const bool wants_regret = o.regret.value_or(analysis::regret_cost(m.opened.tensors, request) <=
                                                analysis::cheap_regret);
    if (wants_regret) analysis::add_regrets(a.results, m.opened.tensors, request, m.control);
    const auto c =
        std::make_shared<const comparison>(evaluate(plan, a, o.phase_sweep, ranked_of(o, m)));

    report::section said{.heading = pages::ranking_heading, .notes = compare_verdict(plan, *c)};
    d.tail = comparison_members(plan, *c);
    d.long_members.emplace_back("series",
                                series_records(std::make_shared<const sweep_plan>(plan), c));
    d.tail.emplace_back("verdict", pages::verdict_lines(said.notes));
    pages::put(d.sections, std::move(said));
    d.results = records_of(a.results);
    return m.finish(std::move(d), a.results, a.skipped, a.sums, false,
                    [&](const pages::result_set& of) { return pages::compare_view(of, o.view); });
}

}  // namespace mx::documents
