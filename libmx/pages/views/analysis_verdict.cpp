// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "libmx/analysis/alarms.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/pages/views/analysis_view.hpp"
#include "libmx/pages/views/recipe_words.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/studies/compare/families.hpp"

namespace mx::pages {
namespace {

// Differences in SQNR that the verdict's two decimals do not show.
constexpr double same_decibels = 0.005;

// Bits per element, over those of full blocks, from which on short blocks are worth a word.
constexpr double short_block_cost = 1.1;

// Recipes that differ in their scale rule only.
struct family {
    std::string name;                            // the recipe under the family's common part
    std::vector<const recipe_summary*> recipes;  // not owned
    std::vector<std::string> names, rules;       // of the recipes
};

std::vector<family> families_of(const std::vector<recipe_summary>& summary) {
    std::vector<family> families;
    for (const recipe_summary& s : summary) {
        codec::recipe common = s.under->recipe;
        const std::string rule(common.rule->name);
        common.rule = codec::default_rule(*common.by, common.scale_format->name);
        const std::string name = codec::to_string(common);
        auto at = std::ranges::find_if(families, [&](const family& f) { return f.name == name; });
        if (at == families.end()) at = families.insert(at, family{name, {}, {}, {}});
        at->recipes.push_back(&s);
        at->names.push_back(s.under->name);
        at->rules.push_back(rule);
    }
    return families;
}

// One tensor under the recipes of one family, in their order; null where it was left out.
using contest = std::vector<const analysis::result*>;

std::vector<contest> contests_of(const std::vector<analysis::result>& results, const family& f) {
    std::vector<contest> contests;
    using full_name = std::pair<std::string_view, std::string_view>;  // file and tensor
    std::map<full_name, std::size_t> places;
    for (const analysis::result& r : results) {
        const auto at = std::ranges::find(f.names, r.under->name);
        if (at == f.names.end()) continue;
        const auto [place, added] =
            places.emplace(full_name(r.of->file, r.of->tensor), contests.size());
        if (added) contests.emplace_back(f.names.size());
        contests[place->second][static_cast<std::size_t>(at - f.names.begin())] = &r;
    }
    return contests;
}

double rmse_of(const analysis::result* r) { return analysis::value_or(r->rmse, 0); }

// Whether every rule was measured on this tensor and at least one of them made an error.
bool comparable(const contest& c) {
    return std::ranges::find(c, nullptr) == c.end() &&
           std::ranges::any_of(c, [](const auto* r) { return rmse_of(r) > 0; });
}

// The index of the smallest R-MSE, the first of equals.
std::size_t best_of(const contest& c) {
    const auto less = [](const auto* a, const auto* b) { return rmse_of(a) < rmse_of(b); };
    return static_cast<std::size_t>(std::ranges::min_element(c, less) - c.begin());
}

// "mxfp4: even wins: 18.9 dB over all elements (floor 18.6, rceil 18.8) and the smallest R-MSE in
// 35 of 36 tensors."
std::string winner_words(const family& f, const std::vector<contest>& contests) {
    std::vector<std::pair<double, std::string>> ranking;
    for (std::size_t i = 0; i < f.recipes.size(); ++i) {
        if (f.recipes[i]->nrmse > 0) ranking.emplace_back(f.recipes[i]->sqnr_db, f.rules[i]);
    }
    if (ranking.size() < 2) return {};
    std::ranges::stable_sort(ranking,
                             [](const auto& a, const auto& b) { return a.first > b.first; });
    std::map<std::string, int> wins;
    int total = 0;
    for (const contest& c : contests) {
        if (!comparable(c)) continue;
        ++total;
        // A tie is a win for everyone who shares it.
        const double least = rmse_of(c[best_of(c)]);
        for (std::size_t i = 0; i < c.size(); ++i) {
            if (rmse_of(c[i]) <= least) ++wins[f.rules[i]];
        }
    }
    // Rules that print the same figure share the first place.
    std::vector<std::string> leaders;
    std::vector<std::string> others;
    for (const auto& [decibels, rule] : ranking) {
        if (ranking.front().first - decibels < same_decibels) {
            leaders.push_back(rule);
        } else {
            others.push_back(fmt::format("{} {:.2f}", rule, decibels));
        }
    }
    const std::string runners_up =
        others.empty() ? std::string() : fmt::format(" ({})", base::joined(others, ", "));
    std::string text =
        leaders.size() == 1
            ? fmt::format(
                  "- {}: {} has the smallest error, {:.2f} dB over all elements{}; it is "
                  "best in {} of {} tensors",
                  f.name, leaders.front(), ranking.front().first, runners_up, wins[leaders.front()],
                  total)
            : fmt::format("- {}: {} have the same error, {:.2f} dB over all elements{}", f.name,
                          base::joined(leaders, " and "), ranking.front().first, runners_up);
    if (leaders.size() > 1) return text + ".";
    const auto most = std::ranges::max_element(
        wins, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most->second > wins[ranking.front().second]) {
        text += fmt::format(", {} in {}", most->first, most->second);
    }
    return text + ".";
}

bool alarming(const analysis::result& r) {
    return r.clamp_rate >= analysis::alarming_clamp_rate ||
           r.saturated_block_rate >= analysis::alarming_saturation;
}

// Clamping first, saturated blocks where that is equal.
std::pair<double, double> badness(const analysis::result& r) {
    return {analysis::value_or(r.clamp_rate, 0), analysis::value_or(r.saturated_block_rate, 0)};
}

// What became of the tensor under the other rules of the family, or how to see that.
std::string remedy_words(const family& f, const contest& c, std::size_t rule) {
    if (c.size() < 2 || !comparable(c)) {
        return compare::measure_more(f.recipes[rule]->under->recipe) + ".";
    }
    const std::size_t best = best_of(c);
    if (best == rule) return "Even so, no other rule run here has a smaller R-MSE there.";
    const double smaller = rmse_of(c[best]) / rmse_of(c[rule]);
    return fmt::format("There, {} clamps {} % and has {:.0f} % less R-MSE.", f.rules[best],
                       report::percent_text(analysis::value_or(c[best]->clamp_rate, 0)),
                       100 * (1 - smaller));
}

// "mxfp8 under floor: 2 of 10 tensors clamp or saturate; in norm 12.50 % of the elements clamp.
// There, even clamps 0 % and has 54 % less R-MSE."
std::string danger_words(const family& f, const std::vector<contest>& contests, std::size_t rule) {
    int count = 0;
    const contest* worst = nullptr;
    for (const contest& c : contests) {
        if (c[rule] == nullptr || !alarming(*c[rule])) continue;
        ++count;
        if (worst == nullptr || badness(*c[rule]) > badness(*(*worst)[rule])) worst = &c;
    }
    if (worst == nullptr) return {};
    const analysis::result& r = *(*worst)[rule];
    const auto [clamped, saturated] = badness(r);
    std::string figures = fmt::format("in {} {} % of the elements clamp",
                                      base::printable(r.of->tensor), report::percent_text(clamped));
    if (saturated > 0) {
        figures += fmt::format(" and {} % of the blocks saturate", report::percent_text(saturated));
    }
    return fmt::format("- {} under {}: {} of {} tensors clamp or saturate; {}. {}", f.name,
                       f.rules[rule], count, contests.size(), figures,
                       remedy_words(f, *worst, rule));
}

// NaN, Inf and inputs that float32 does not hold, each tensor once however many recipes.
std::vector<std::string> input_words(const std::vector<analysis::result>& results) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    int non_finite = 0;
    int inexact = 0;
    std::string first_bad;
    int thin = 0;  // tensors whose blocks are mostly much shorter than the recipe's
    double dearest = 0;
    std::string thinnest;
    for (const analysis::result& r : results) {
        if (!seen.emplace(r.of->file, r.of->tensor).second) continue;
        if (r.nan + r.inf > 0 && non_finite++ == 0) first_bad = r.of->tensor;
        if (r.inexact_inputs > 0) ++inexact;
        const codec::recipe& recipe = r.under->recipe;
        const auto of_block = static_cast<std::uint64_t>(recipe.block.rows) * recipe.block.cols;
        const bool short_blocks =
            r.bits_per_element > short_block_cost * bits_per_element(recipe) &&
            r.elements >= of_block;
        if (!short_blocks) continue;
        ++thin;
        if (r.bits_per_element > dearest) {
            dearest = r.bits_per_element;
            thinnest = r.of->tensor;
        }
    }
    std::vector<std::string> notes;
    if (non_finite > 0) {
        notes.push_back(
            fmt::format("- {} tensor{} NaN or Inf ({}{}): the other elements of "
                        "their blocks are poisoned and left out of every figure.",
                        non_finite, non_finite == 1 ? " holds" : "s hold",
                        base::printable(first_bad), non_finite == 1 ? "" : ", ..."));
    }
    if (inexact > 0) {
        notes.push_back(
            fmt::format("- {} tensor{} values that float32 does not hold; they were "
                        "rounded to it once (inexact_inputs).",
                        inexact, inexact == 1 ? " holds" : "s hold"));
    }
    if (thin > 0) {
        notes.push_back(fmt::format(
            "- {} tensor{} an axis shorter than the block, so that scales weigh more ({} takes "
            "{:.2f} bits per element); axis=flat blocks the flattened tensor instead.",
            thin, thin == 1 ? " has" : "s have", base::printable(thinnest), dearest));
    }
    return notes;
}

}  // namespace

std::vector<std::string> verdict_of(const std::vector<analysis::result>& results,
                                    const std::vector<recipe_summary>& summary) {
    std::vector<std::string> verdict;
    std::vector<std::string> dangers;
    for (const family& f : families_of(summary)) {
        const std::vector<contest> contests = contests_of(results, f);
        if (std::string text = winner_words(f, contests); !text.empty()) {
            verdict.push_back(std::move(text));
        }
        for (std::size_t rule = 0; rule < f.rules.size(); ++rule) {
            std::string text = danger_words(f, contests, rule);
            if (!text.empty()) dangers.push_back(std::move(text));
        }
    }
    for (std::string& note : input_words(results)) verdict.push_back(std::move(note));
    verdict.insert(verdict.end(), dangers.begin(), dangers.end());
    if (!dangers.empty()) {
        verdict.push_back(
            fmt::format("Counted are tensors with a clamp rate of {:.0f} % or more, or with {:.0f} "
                        "% or more of their blocks saturated.",
                        100 * analysis::alarming_clamp_rate, 100 * analysis::alarming_saturation));
    }
    return verdict;
}

}  // namespace mx::pages
