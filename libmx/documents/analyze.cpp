// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "libmx/analysis/regret.hpp"
#include "libmx/base/decibels.hpp"
#include "libmx/documents/studies.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/offers.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::documents {
namespace {

using pages::real;
using pages::undefined;

constexpr const char* regret_share = "regret_share";

struct accumulator {
    std::shared_ptr<const analysis::named_recipe> under;
    compare::pool all;
    std::int64_t tensors = 0;
    bool decomposed = false, with_regret = false;
    std::array<double, 4> squared_error{};
    std::string worst;
    double worst_nrmse = 0;

    void add(const analysis::result& r) {
        tensors += r.group ? static_cast<std::int64_t>(r.group->members) : 1;
        all.add(r);
        decomposed = decomposed || r.decomposed;
        with_regret = with_regret || r.with_regret;
        for (std::size_t i = 0; i < squared_error.size(); ++i) {
            squared_error[i] += analysis::value_or(r.squared_error[i], 0);
        }
        const double largest = r.group ? r.group->worst_nrmse : r.nrmse;
        if (largest > worst_nrmse) {
            worst_nrmse = largest;
            worst = r.group ? r.group->worst_member : r.of->tensor;
        }
    }

    bool has_error() const { return all.error2 > 0 && all.x2 > 0; }
    double nrmse() const { return has_error() ? *all.nrmse() : 0; }
    double sqnr_db() const { return has_error() ? base::decibels_of_root(nrmse()) : 0; }
    // Part `i` of the squared error, from 1.
    report::value share_of_part(std::size_t i) const {
        return squared_error[0] > 0 ? real(squared_error[i] / squared_error[0]) : undefined();
    }
    std::optional<double> rate(std::string_view name) const {
        return all.rate(compare::rate_index(name));
    }
};

using sum_member = report::declared<accumulator>;
constexpr std::array sum_members = std::to_array<sum_member>({
    {"recipe", "string", "", [](auto& a) { return a.under->name; }},
    {"tensors", "count", "", [](auto& a) { return a.tensors; }},
    {"elements", "count", "", [](auto& a) { return static_cast<std::int64_t>(a.all.elements); }},
    {"bits_per_element", "@members#bits_per_element", "",
     [](auto& a) { return a.all.elements > 0 ? real(a.all.bits / a.all.elements) : undefined(); }},
    {"exact", "boolean", "it holds every tensor exactly",
     [](auto& a) { return a.all.tensors > 0 && a.all.lossless; }},
    {"nrmse", "@members#nrmse", "",
     [](auto& a) { return a.has_error() ? real(a.nrmse()) : undefined(); }},
    {"sqnr_db", "@members#sqnr_db",
     "-10 log10(sum of squared errors / sum of squares), over all tensors (dB)",
     [](auto& a) { return a.has_error() ? real(a.sqnr_db()) : undefined(); }},
    {"mean_sqnr_db", "number?", "mean of the records' SQNR (dB): those of tensors, or of groups",
     [](auto& a) { return a.all.mean_sqnr_db(); }},
    {"overflow_rate", "@members#overflow_rate", "",
     [](auto& a) { return a.rate("overflow_rate"); }},
    {"clamp_rate", "@members#clamp_rate", "", [](auto& a) { return a.rate("clamp_rate"); }},
    {"underflow_rate", "@members#underflow_rate", "",
     [](auto& a) { return a.rate("underflow_rate"); }},
    {"saturated_block_rate", "@members#saturated_block_rate", "",
     [](auto& a) { return a.rate("saturated_block_rate"); }},
});
constexpr std::array origin_members = std::to_array<sum_member>({
    {"clamp_error_share", "@members#clamp_error_share", "",
     [](auto& a) { return a.share_of_part(1); }},
    {"underflow_error_share", "@members#underflow_error_share", "",
     [](auto& a) { return a.share_of_part(2); }},
    {"grid_error_share", "@members#grid_error_share", "",
     [](auto& a) { return a.share_of_part(3); }},
});
constexpr std::array regret_members{sum_member{regret_share, "@members#regret_share", "",
                                               [](auto& a) { return a.rate(regret_share); }}};
constexpr std::array worst_members = std::to_array<sum_member>({
    {"worst_tensor", "string", "the tensor with the lowest SQNR; empty where none has one",
     [](auto& a) { return a.worst; }},
    {"worst_sqnr_db", "number?", "its SQNR (dB)",
     [](auto& a) {
         return a.worst_nrmse > 0 ? real(base::decibels_of_root(a.worst_nrmse)) : undefined();
     }},
});

report::record summary_of(const accumulator& a) {
    report::record r = report::written(sum_members, a);
    if (a.decomposed) report::append(r, origin_members, a);
    if (a.with_regret) report::append(r, regret_members, a);
    report::append(r, worst_members, a);
    return r;
}

// One per recipe, in the order of their first appearance.
report::list summarize(const analysis::result_list& results) {
    std::vector<accumulator> sums;
    for (const analysis::result& r : results) {
        auto at = std::ranges::find_if(
            sums, [&](const accumulator& a) { return a.under->name == r.under->name; });
        if (at == sums.end()) {
            at = sums.insert(at, accumulator());
            at->under = r.under;
        }
        at->add(r);
    }
    return report::to_list(sums, summary_of);
}

}  // namespace

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

    report::document d;
    d.tail.emplace_back("summary", summarize(a.results));
    d.results = records_of(a.results);
    return m.finish(std::move(d), a.results, a.skipped, a.sums, true,
                    [&](const pages::result_set& of) {
                        pages::analysis_view_options view = o.view;
                        // Nobody asked for today's formats: they stand beside the recommended
                        // recipe of each class.
                        for (const codec::recipe& r : policy::baselines()) {
                            if (o.recipes.empty()) view.hidden.push_back(codec::to_string(r));
                        }
                        return pages::analysis_view(of, view);
                    });
}

void declare_summary(report::document_schema& to) {
    report::member_list all;
    all.add(sum_members).add_of_some(origin_members).add_of_some(regret_members).add(worst_members);
    to.member({"summary", "[#summary]", "a recipe over all tensors each; mx analyze", false})
        .define("summary", all);
}

}  // namespace mx::documents
