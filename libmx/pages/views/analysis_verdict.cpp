// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/analysis_verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "libmx/analysis/alarms.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/pages/views/analysis_summary.hpp"
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
    std::string name;  // the recipe under the family's common part
    std::vector<std::string> recipes;
    std::vector<std::string> rules;
};

std::vector<family> families_of(const std::vector<report::record>& summary) {
    std::vector<family> families;
    for (const report::record& s : summary) {
        const std::string recipe = words(s, "recipe");
        codec::recipe common = codec::parse_recipe(recipe);
        const std::string rule(common.rule->name);
        common.rule = codec::default_rule(*common.by, common.scale_format->name);
        const std::string name = codec::to_string(common);
        auto at = std::find_if(families.begin(), families.end(),
                               [&](const family& f) { return f.name == name; });
        if (at == families.end()) at = families.insert(at, family{name, {}, {}});
        at->recipes.push_back(recipe);
        at->rules.push_back(rule);
    }
    return families;
}

// What the verdict looks at in one record.
struct entrant {
    bool present = false;  // false where the tensor was left out
    double rmse = 0;
    double clamp_rate = 0;
    double saturated_block_rate = 0;
};

// One tensor under the recipes of one family, in their order.
struct contest {
    std::string tensor;
    std::vector<entrant> under;
};

std::vector<contest> contests_of(const report::record_list& results, const family& f) {
    std::vector<contest> contests;
    std::map<std::string, std::size_t> places;
    for (const report::record& r : results) {
        const auto at = std::find(f.recipes.begin(), f.recipes.end(), words(r, "recipe"));
        if (at == f.recipes.end()) continue;
        const std::string identity = words(r, "file") + '\n' + words(r, "tensor");
        const auto [place, added] = places.emplace(identity, contests.size());
        if (added) contests.push_back({words(r, "tensor"), std::vector<entrant>(f.recipes.size())});
        const auto recipe = static_cast<std::size_t>(at - f.recipes.begin());
        contests[place->second].under[recipe] = {true, number(r, "rmse"), number(r, "clamp_rate"),
                                                 number(r, "saturated_block_rate")};
    }
    return contests;
}

// Whether every rule was measured on this tensor and at least one of them made an error.
bool comparable(const contest& c) {
    return std::all_of(c.under.begin(), c.under.end(),
                       [](const entrant& e) { return e.present; }) &&
           std::any_of(c.under.begin(), c.under.end(), [](const entrant& e) { return e.rmse > 0; });
}

// The index of the smallest R-MSE, the first of equals.
std::size_t best_of(const contest& c) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < c.under.size(); ++i) {
        if (c.under[i].rmse < c.under[best].rmse) best = i;
    }
    return best;
}

const report::record* summary_of(const std::vector<report::record>& summary,
                                 const std::string& recipe) {
    for (const report::record& s : summary) {
        if (words(s, "recipe") == recipe) return &s;
    }
    return nullptr;
}

// "mxfp4: even wins: 18.9 dB over all elements (floor 18.6, rceil 18.8) and the smallest R-MSE in
// 35 of 36 tensors."
std::string winner_words(const family& f, const std::vector<contest>& contests,
                         const std::vector<report::record>& summary) {
    std::vector<std::pair<double, std::string>> ranking;
    for (std::size_t i = 0; i < f.recipes.size(); ++i) {
        const report::record* s = summary_of(summary, f.recipes[i]);
        if (s != nullptr && number(*s, "nrmse") > 0) {
            ranking.emplace_back(number(*s, "sqnr_db"), f.rules[i]);
        }
    }
    if (ranking.size() < 2) return {};
    std::stable_sort(ranking.begin(), ranking.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::map<std::string, int> wins;
    int total = 0;
    for (const contest& c : contests) {
        if (!comparable(c)) continue;
        ++total;
        // A tie is a win for everyone who shares it.
        const double least = c.under[best_of(c)].rmse;
        for (std::size_t i = 0; i < c.under.size(); ++i) {
            if (c.under[i].rmse <= least) ++wins[f.rules[i]];
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
        others.empty() ? std::string() : fmt::format(" ({})", fmt::join(others, ", "));
    std::string text =
        leaders.size() == 1
            ? fmt::format(
                  "- {}: {} has the smallest error, {:.2f} dB over all elements{}; it is "
                  "best in {} of {} tensors",
                  f.name, leaders.front(), ranking.front().first, runners_up, wins[leaders.front()],
                  total)
            : fmt::format("- {}: {} have the same error, {:.2f} dB over all elements{}", f.name,
                          fmt::join(leaders, " and "), ranking.front().first, runners_up);
    if (leaders.size() > 1) return text + ".";
    const auto most = std::max_element(
        wins.begin(), wins.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most->second > wins[ranking.front().second]) {
        text += fmt::format(", {} in {}", most->first, most->second);
    }
    return text + ".";
}

bool alarming(const entrant& e) {
    return e.clamp_rate >= analysis::alarming_clamp_rate ||
           e.saturated_block_rate >= analysis::alarming_saturation;
}

// Clamping first, saturated blocks where that is equal.
std::pair<double, double> badness(const entrant& e) {
    return {e.clamp_rate, e.saturated_block_rate};
}

// What became of the tensor under the other rules of the family, or how to see that.
std::string remedy_words(const family& f, const contest& c, std::size_t rule) {
    if (c.under.size() < 2 || !comparable(c)) {
        return compare::measure_more(codec::parse_recipe(f.recipes[rule])) + ".";
    }
    const std::size_t best = best_of(c);
    if (best == rule) {
        return fmt::format("Even so, no other rule run here has a smaller R-MSE there.");
    }
    const double smaller = c.under[best].rmse / c.under[rule].rmse;
    return fmt::format("There, {} clamps {} % and has {:.0f} % less R-MSE.", f.rules[best],
                       report::percent_text(c.under[best].clamp_rate), 100 * (1 - smaller));
}

// "mxfp8 under floor: 2 of 10 tensors clamp or saturate; in norm 12.50 % of the elements clamp.
// There, even clamps 0 % and has 54 % less R-MSE."
std::string danger_words(const family& f, const std::vector<contest>& contests, std::size_t rule) {
    int count = 0;
    const contest* worst = nullptr;
    for (const contest& c : contests) {
        const entrant& e = c.under[rule];
        if (!e.present || !alarming(e)) continue;
        ++count;
        if (worst == nullptr || badness(e) > badness(worst->under[rule])) worst = &c;
    }
    if (worst == nullptr) return {};
    const entrant& e = worst->under[rule];
    std::string figures =
        fmt::format("in {} {} % of the elements clamp", base::printable(worst->tensor),
                    report::percent_text(e.clamp_rate));
    if (e.saturated_block_rate > 0) {
        figures += fmt::format(" and {} % of the blocks saturate",
                               report::percent_text(e.saturated_block_rate));
    }
    return fmt::format("- {} under {}: {} of {} tensors clamp or saturate; {}. {}", f.name,
                       f.rules[rule], count, contests.size(), figures,
                       remedy_words(f, *worst, rule));
}

// NaN, Inf and inputs that float32 does not hold, each tensor once however many recipes.
std::vector<std::string> input_words(const report::record_list& results) {
    std::map<std::string, bool> seen;
    int non_finite = 0;
    int inexact = 0;
    std::string first_bad;
    int thin = 0;  // tensors whose blocks are mostly much shorter than the recipe's
    double dearest = 0;
    std::string thinnest;
    for (const report::record& r : results) {
        if (!seen.emplace(words(r, "file") + '\n' + words(r, "tensor"), true).second) continue;
        if (number(r, "nan") + number(r, "inf") > 0) {
            if (non_finite++ == 0) first_bad = words(r, "tensor");
        }
        if (number(r, "inexact_inputs") > 0) ++inexact;
        const codec::recipe recipe = codec::parse_recipe(words(r, "recipe"));
        const double bits = number(r, "bits_per_element");
        const bool short_blocks = bits > short_block_cost * bits_per_element(recipe) &&
                                  number(r, "elements") >= recipe.block.rows * recipe.block.cols;
        if (!short_blocks) continue;
        ++thin;
        if (bits > dearest) {
            dearest = bits;
            thinnest = words(r, "tensor");
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

std::vector<std::string> verdict_of(const report::record_list& results,
                                    const std::vector<report::record>& summary) {
    std::vector<std::string> verdict;
    std::vector<std::string> dangers;
    for (const family& f : families_of(summary)) {
        const std::vector<contest> contests = contests_of(results, f);
        if (std::string text = winner_words(f, contests, summary); !text.empty()) {
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
