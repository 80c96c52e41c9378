// SPDX-License-Identifier: Apache-2.0
// The results of mx compare as part of a review.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "libmx/pages/figure_parts.hpp"
#include "libmx/pages/sections.hpp"
#include "libmx/pages/views/compare_view.hpp"
#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/policy/policy.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::text_of;

constexpr std::size_t shown_cells_of_ranking = 20;
constexpr std::size_t groups_with_figures = 4;

// "P" for members of the Pareto front of bits and SQNR, "*" for the smallest ratio.
report::section ranking_of(const report::record& tail) {
    report::section s{.heading = "Ranking of recipes"};
    const std::vector<report::record> ranking = records_in(tail, "ranking");
    for (const report::record& r : ranking) {
        if (s.rows.size() == shown_cells_of_ranking) break;
        const auto flag = [&](const char* name, const char* sign) {
            const bool* on = report::member<bool>(r, name);
            return std::string(on != nullptr && *on ? sign : "");
        };
        s.rows.push_back(r);
        s.rows.back().emplace_back("mark", flag("best", "*") + flag("pareto", "P"));
    }
    if (s.rows.empty()) return s;
    const bool regret = std::ranges::any_of(s.rows, [](const report::record& r) {
        return report::number_of(r, "regret_share").has_value();
    });
    s.columns = ranking_columns(false, false, regret);
    if (regret) s.notes.emplace_back(regret_note);
    const auto count = [&](const char* name) {
        return report::whole(report::number_of(tail, name).value_or(0));
    };
    s.notes.push_back(fmt::format(
        "Ratio: geometric mean over {} tensors of the R-MSE relative to {}. Wins: tensors with the "
        "smallest R-MSE (of {}; ties count for all). SQNR: over all elements together. *: least "
        "ratio; P: on the Pareto front of bits against SQNR.{}",
        count("ranked_tensors"), text_of(tail, "baseline"), count("contests"),
        ranking.size() > s.rows.size()
            ? fmt::format(" The first {} of {} recipes.", s.rows.size(), ranking.size())
            : ""));
    return s;
}

report::section roles_of(const report::record& tail) {
    report::section s{.heading = "Least error by class",
                      .columns = columns_of({"role", "tensors", "least_error", "ratio", "wins",
                                             "second", "second_ratio"})};
    report::heat_map map;
    map.value = axis_of(fmt::format("R-MSE relative to {}", text_of(tail, "baseline")), "");
    map.limit = 1;
    // Classes of operands first.
    const policy::policy by = policy::find_policy("training");
    std::vector<report::record> roles = records_in(tail, "roles");
    std::stable_partition(roles.begin(), roles.end(), [&](const report::record& r) {
        return by.kept(text_of(r, "role")) == nullptr;
    });
    for (const report::record& r : roles) {
        const std::vector<report::record> ranking = records_in(r, "ranking");
        if (ranking.empty()) continue;
        const auto at = [&](std::size_t place, const char* name) {
            return place < ranking.size() ? report::value_of(ranking[place], name) : undefined();
        };
        s.add(text_of(r, "role"), report::value_of(r, "tensors"), at(0, "recipe"),
              at(0, "rmse_ratio"), at(0, "wins"), at(1, "recipe"), at(1, "rmse_ratio"));
        map.rows.push_back(text_of(r, "role"));
        map.cells.emplace_back(map.columns.size());
        for (const report::record& cell : ranking) {
            const std::string recipe = text_of(cell, "recipe");
            const auto known = std::ranges::find(map.columns, recipe);
            const auto column = static_cast<std::size_t>(known - map.columns.begin());
            if (column == map.columns.size()) {
                if (column == most_figure_recipes) continue;
                map.columns.push_back(recipe);
                map.cells.back().resize(column + 1);
            }
            // Differences beyond three decimals are rounding errors.
            if (const auto ratio = report::number_of(cell, "rmse_ratio")) {
                map.cells.back()[column] = std::round(*ratio * 1000) / 1000;
            }
        }
    }
    if (s.rows.empty()) return s;
    s.notes.push_back(
        "Least error only; the verdict has the recommendation for each class. Norms, biases and "
        "routers keep their stored precision.");
    add_figure(s, "ratios", "R-MSE by class and recipe",
               "Geometric means over the tensors of a class. Outlined: more error than the "
               "baseline.",
               std::move(map));
    return s;
}

report::section disagreements_of(const report::record& tail) {
    report::section s{.heading = "Where scale rules differ"};
    const std::vector<report::record> groups = records_in(tail, "disagreement");
    for (const report::record& g : groups) {
        const auto* recipes = report::member<report::list>(g, "recipes");
        const auto* rates = report::member<report::list>(g, "scale_difference_rate");
        if (recipes == nullptr || rates == nullptr || s.figures.size() == groups_with_figures)
            continue;
        report::heat_map map;
        map.value = axis_of("blocks with another scale", "", false, true);
        for (const report::value& v : *recipes) {
            const auto* name = std::get_if<std::string>(&v);
            map.rows.push_back(name == nullptr ? "" : *name);
        }
        map.columns = map.rows;
        for (const report::value& v : *rates) {
            auto& cells = map.cells.emplace_back();
            const auto* row = std::get_if<report::list>(&v);
            for (std::size_t i = 0; row != nullptr && i < row->size(); ++i) {
                cells.push_back(report::number_of((*row)[i]));
            }
        }
        add_figure(s, "disagreement",
                   fmt::format("Scales that differ between the rules of {}", text_of(g, "group")),
                   "Of the blocks, the share whose scale byte differs between two rules.",
                   std::move(map));
    }
    if (groups.size() > s.figures.size()) {
        s.notes.push_back(fmt::format("{} more groups of recipes are in the results.",
                                      groups.size() - s.figures.size()));
    }
    return s;
}

}  // namespace

std::vector<report::section> comparison_sections(std::span<const result_set> sets) {
    std::vector<report::section> all;
    for (const result_set& s : sets) {
        if (report::find(*s.tail, "ranking") == nullptr) continue;
        report::section said = verdict_of(*s.tail);
        said.heading = "What the ranking says";
        put(all, std::move(said));
        put(all, ranking_of(*s.tail));
        put(all, roles_of(*s.tail));
        put(all, disagreements_of(*s.tail));
    }
    return all;
}

}  // namespace mx::pages
