// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/regret.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "libmx/codec/best_scales.hpp"

namespace mx::analysis {
namespace {

// Sums of one recipe by two methods differ by less than this share of themselves.
constexpr double sum_accuracy = 1e-6;

std::vector<codec::recipe> best_recipes(const std::vector<codec::recipe>& recipes) {
    std::vector<codec::recipe> all;
    for (const codec::recipe& r : recipes) {
        const auto best = codec::with_best_scales(r);
        if (best && std::ranges::find(all, *best) == all.end()) all.push_back(*best);
    }
    return all;
}

void set_regret(result& r, double best_rmse) {
    const double error = r.rmse * r.rmse, best = best_rmse * best_rmse;
    r.best_rmse = best_rmse;
    const bool same = std::abs(error - best) <= sum_accuracy * error;
    r.regret = same ? 0.0 : error - best;
    if (error > 0) r.regret_share = r.regret / error;
}

}  // namespace

std::uint64_t regret_cost(const std::vector<engine::tensor_ref>& tensors,
                          const engine::run_request& request) {
    std::vector<engine::skipped_tensor> skipped;
    std::uint64_t elements = 0;
    for (const engine::tensor_ref& t : engine::numeric_only(tensors, skipped)) {
        elements += tensor::element_count(t.info().shape).value_or(0);
    }
    return elements * best_recipes(request.recipes).size() * request.factors.size();
}

void add_regrets(std::vector<result>& results, const std::vector<engine::tensor_ref>& tensors,
                 const analysis_request& request, const engine::run_control& control) {
    for (result& r : results) r.with_regret = true;
    analysis_request searched;
    static_cast<engine::run_request&>(searched) = request;
    searched.recipes = best_recipes(request.recipes);
    searched.groups = request.groups;
    searched.share = nullptr;  // parts leave this to mx merge
    if (searched.recipes.empty()) return;
    const analysis best = analyze(tensors, searched, control);

    using place = std::tuple<std::string, std::string, std::string, std::int64_t>;
    const auto place_of = [](const result& r, const std::string& recipe) {
        return place{r.of->file, r.of->tensor, recipe, r.phase.value_or(0)};
    };
    std::map<place, const result*> found;
    for (const result& r : best.results) found.emplace(place_of(r, r.under->name), &r);
    std::map<std::string, std::string> best_of;  // by recipe
    for (result& r : results) {
        const auto [at, added] = best_of.try_emplace(r.under->name);
        if (added) {
            const auto recipe = codec::with_best_scales(r.under->recipe);
            if (recipe) at->second = codec::to_string(*recipe);
        }
        const auto measured = found.find(place_of(r, at->second));
        // Where NaN or the ends of the scale's range poison other blocks, the errors are of
        // different elements.
        if (measured == found.end() || measured->second->counted() != r.counted()) continue;
        set_regret(r, measured->second->rmse);
    }
}

}  // namespace mx::analysis
