// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/regret.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

void set_regret(result_list& results, std::size_t i, const result& r, double best_rmse) {
    const double error = r.rmse * r.rmse, best = best_rmse * best_rmse;
    const bool same = std::abs(error - best) <= sum_accuracy * error;
    const double regret = same ? 0.0 : error - best;
    results.set_regret(i, best_rmse, regret, error > 0 ? regret / error : r.regret_share);
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

void add_regrets(result_list& results, const std::vector<engine::tensor_ref>& tensors,
                 const analysis_request& request, const engine::run_control& control) {
    results.add_regret();
    analysis_request searched;
    static_cast<engine::run_request&>(searched) = request;
    searched.recipes = best_recipes(request.recipes);
    searched.groups = request.groups;
    searched.partial = nullptr;  // parts leave this to mx merge
    if (searched.recipes.empty()) return;
    const analysis best = analyze(tensors, searched, control);

    // The results of a tensor follow one another: where they begin.
    std::map<std::pair<std::string, std::string>, std::size_t> begins;
    std::size_t next = 0;
    for (const result& r : best.results) begins.try_emplace({r.of->file, r.of->tensor}, next++);
    std::map<std::string, std::string> best_of;  // by recipe
    std::vector<result> searched_of;             // of the tensor that `of` says
    std::shared_ptr<const tensor_identity> of;
    std::size_t i = 0;
    for (const result& r : results) {
        const std::size_t here = i++;
        const auto [at, added] = best_of.try_emplace(r.under->name);
        std::string& best_name = at->second;
        if (added) {
            const auto recipe = codec::with_best_scales(r.under->recipe);
            if (recipe) best_name = codec::to_string(*recipe);
        }
        if (of != r.of) {
            of = r.of;
            searched_of.clear();
            const auto begin = begins.find({of->file, of->tensor});
            for (std::size_t b = begin == begins.end() ? best.results.size() : begin->second;
                 b < best.results.size(); ++b) {
                result one = best.results[b];
                if (one.of->tensor != of->tensor || one.of->file != of->file) break;
                searched_of.push_back(std::move(one));
            }
        }
        const auto measured = std::ranges::find_if(searched_of, [&](const result& one) {
            return one.under->name == best_name && one.phase == r.phase;
        });
        // Where NaN or the ends of the scale's range poison other blocks, the errors are of
        // different elements.
        if (measured == searched_of.end() || measured->counted() != r.counted()) continue;
        set_regret(results, here, r, measured->rmse);
    }
}

}  // namespace mx::analysis
