// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/compare_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/figures.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/text.hpp"

namespace mx::pages {
namespace {

using report::cell;
using report::column;
using report::list;
using report::member;
using report::number_of;
using report::record;
using report::section;
using report::text_of;

// Width that a page of 100 columns leaves for recipes.
constexpr std::size_t ranking_width = 51;  // less if there are more figures
constexpr std::size_t roles_width = 23;
constexpr std::size_t layers_width = 31;
constexpr std::size_t phases_width = 24;
constexpr std::size_t worst_width = 60;
// The largest number of matrices of scale disagreement, and of those with a figure.
constexpr std::size_t shown_matrices = 8;
constexpr std::size_t drawn_matrices = 4;

std::string recipe_of(const record& r, std::size_t width, const char* name = "recipe") {
    return report::breakable(text_of(r, name), width);
}

std::vector<column> ranking_columns(bool seeds, bool parts, bool regret) {
    std::vector<column> columns =
        columns_of({"mark", "recipe", "bits_per_element", "rmse_ratio",
                    column_of("rmse_ratio_interval", "+-", cell::significant, 2), "wins", "sqnr_db",
                    "clamp_rate", "underflow_rate", column_of("clamp_error_share", "error\nclamp"),
                    column_of("underflow_error_share", "error\nzero"), "regret_share"});
    std::erase_if(columns, [&](const column& c) {
        return (!seeds && c.field == "rmse_ratio_interval") ||
               (!parts && c.field.ends_with("_error_share")) ||
               (!regret && c.field == "regret_share");
    });
    return columns;
}

section ranking_section(const record& tail, std::size_t top) {
    std::vector<record> ranking = records_in(tail, "ranking");
    section s;
    const std::uint64_t everywhere = count_of(tail, "ranked_tensors");
    const std::uint64_t some = count_of(tail, "not_everywhere");
    const std::string tensors = report::plural(everywhere + some, "tensor");
    s.heading = fmt::format(
        "{} over {}{}; R-MSE relative to {}", report::plural(ranking.size(), "cell"),
        some > 0 ? fmt::format("{} of ", everywhere) : "", tensors, text_of(tail, "baseline"));
    if (top < ranking.size()) {
        s.notes.push_back(
            fmt::format("The first {} of {} cells (--top N: more).", top, ranking.size()));
    }
    double compared = 0;
    for (const record& r : ranking) compared = std::max(compared, number_or(r, "compared", 0));
    ranking.resize(std::min(top, ranking.size()));
    const auto any_has = [&](const char* name) {
        return std::ranges::any_of(ranking,
                                   [&](const record& r) { return number_of(r, name).has_value(); });
    };
    const bool seeds = any_has("rmse_ratio_interval");
    const bool parts = any_has("clamp_error_share");
    const bool regret = any_has("regret_share");
    const std::size_t width =
        ranking_width - (seeds ? 9u : 0u) - (parts ? 16u : 0u) - (regret ? 8u : 0u);
    for (record& r : ranking) {
        show(r, "recipe", recipe_of(r, width));
        if (is_true(r, "exact")) show(r, "sqnr_db", "exact");
        r.emplace_back("mark", fmt::format("{}{}", is_true(r, "best") ? "*" : "",
                                           is_true(r, "pareto") ? "P" : ""));
        s.rows.push_back(std::move(r));
    }
    s.columns = ranking_columns(seeds, parts, regret);
    s.notes.push_back(fmt::format(
        "Ratio: geometric mean over {}, those left out that some cell quantizes exactly. Wins: "
        "tensors with the smallest R-MSE (of {}; ties count for all). SQNR: over all elements "
        "together. *: least ratio; P: on the Pareto front of bits against SQNR.",
        report::plural(counted(compared), "tensor"), count_of(tail, "contests")));
    if (seeds) {
        s.notes.push_back(
            "+-: 95 % interval of the mean over seeds (Student's t), where random numbers are "
            "drawn.");
    }
    if (regret) {
        s.notes.push_back(
            "Regret: share of the squared error that the best scale of each block would save, %.");
    }
    if (parts) {
        s.notes.push_back(
            "Error: shares of the squared error in clamped elements and in those that became "
            "zero, %; the rest is the grid's.");
    }
    return s;
}

// R-MSE relative to the baseline, by class and recipe.
report::heat_map ratios_of(const std::vector<record>& roles, const std::string& baseline) {
    report::heat_map map;
    map.value = axis_of(fmt::format("R-MSE relative to {}", baseline), "");
    map.limit = 1;
    for (const record& r : roles) {
        map.rows.push_back(text_of(r, "role"));
        map.cells.emplace_back(map.columns.size());
        for (const record& one : records_in(r, "ranking")) {
            const std::string recipe = text_of(one, "recipe");
            const auto known = std::ranges::find(map.columns, recipe);
            const auto column = static_cast<std::size_t>(known - map.columns.begin());
            if (column == map.columns.size()) {
                if (column == most_figure_recipes) continue;
                map.columns.push_back(recipe);
                map.cells.back().resize(column + 1);
            }
            // Differences beyond three decimals are rounding errors.
            if (const auto ratio = number_of(one, "rmse_ratio")) {
                map.cells.back()[column] = std::round(*ratio * 1000) / 1000;
            }
        }
    }
    return map;
}

section roles_section(const record& tail) {
    section s{.heading = "Best cell by role",
              .columns = columns_of({column_of("role", "role"), "tensors", "best", "ratio", "wins",
                                     "second", "second_ratio"})};
    const auto ratio = [](const record& one) {
        return is_true(one, "exact") ? text("exact") : report::value_of(one, "rmse_ratio");
    };
    std::vector<record> roles = records_in(tail, "roles");
    std::erase_if(roles, [](const record& r) { return records_in(r, "ranking").empty(); });
    for (const record& r : roles) {
        const std::vector<record> ranking = records_in(r, "ranking");
        s.add(text_of(r, "role"), report::value_of(r, "ranked_tensors"),
              recipe_of(ranking[0], roles_width), ratio(ranking[0]),
              report::value_of(ranking[0], "wins"));
        if (ranking.size() > 1) {
            s.rows.back().emplace_back("second", recipe_of(ranking[1], roles_width));
            s.rows.back().emplace_back("second_ratio", ratio(ranking[1]));
        }
    }
    if (s.rows.empty()) return s;
    s.notes.push_back(
        "Least error only. For a recommendation of what to quantize and ship, see mx analyze.");
    add_figure(s, "ratios", "R-MSE by class and recipe",
               "Geometric means over the tensors of a class. Outlined: more error than the "
               "baseline.",
               ratios_of(roles, text_of(tail, "baseline")));
    return s;
}

// The records of one kind of tensor: a recipe each, with a list per figure.
using layer_series = std::vector<record>;

// With `all`, every series; else the only one, or none.
void for_each_series(const result_set& of, bool all,
                     const std::function<void(const layer_series&)>& take) {
    layer_series now;
    // Whether more is wanted.
    const auto add = [&](const record& r) {
        const auto same = [&](const char* name) {
            return text_of(now.front(), name) == text_of(r, name);
        };
        if (!now.empty() && !(same("file") && same("series"))) {
            if (!all) return false;
            take(std::exchange(now, {}));
        }
        now.push_back(r);
        return true;
    };
    if (of.series != nullptr) {
        for (const record& r : *of.series) {
            if (!add(r)) return;
        }
    } else if (const list* records = member<list>(*of.tail, "series")) {
        for (const report::value& v : *records) {
            const record* r = std::get_if<record>(&v);
            if (r != nullptr && !add(*r)) return;
        }
    }
    if (!now.empty()) take(now);
}

section layers_section(const result_set& of, bool all) {
    section s{.heading = "Layer by layer",
              .columns = columns_of({column_of("layer", "layer", cell::integer), "best", "rmse",
                                     column_of("ratio", "ratio"), "overflow_rate", "underflow_rate",
                                     column_of("baseline", "baseline's\nR-MSE", cell::significant),
                                     column_of("base_overflow", "over-\nflow %", cell::share),
                                     column_of("base_underflow", "under-\nflow %", cell::share)}),
              .group_field = "series"};
    const record& tail = *of.tail;
    const std::string baseline = text_of(tail, "baseline");
    std::set<std::string> cells;
    for (const record& r : records_in(tail, "ranking")) cells.insert(text_of(r, "recipe"));
    const auto at = [](const record* r, const char* name, std::size_t i) -> std::optional<double> {
        const list* figures = r == nullptr ? nullptr : member<list>(*r, name);
        if (figures == nullptr || i >= figures->size()) return {};
        return number_of((*figures)[i]);
    };
    for_each_series(of, all, [&](const layer_series& one) {
        const record* base = nullptr;
        std::vector<const record*> ranked;
        for (const record& r : one) {
            const std::string recipe = text_of(r, "recipe");
            if (recipe == baseline) base = &r;
            if (cells.contains(recipe)) ranked.push_back(&r);
        }
        const list* layers = member<list>(one.front(), "layers");
        for (std::size_t i = 0; layers != nullptr && i < layers->size(); ++i) {
            const record* best = nullptr;
            std::optional<double> rmse;
            for (const record* r : ranked) {
                const auto error = at(r, "rmse", i);
                if (!error || (rmse && *error >= *rmse)) continue;
                best = r;
                rmse = error;
            }
            if (best == nullptr) continue;
            const auto of_base = at(base, "rmse", i);
            s.add_to(text_of(one.front(), "series"), (*layers)[i], recipe_of(*best, layers_width),
                     rmse, of_base && *of_base > 0 ? std::optional(*rmse / *of_base) : std::nullopt,
                     at(best, "overflow_rate", i), at(best, "underflow_rate", i), of_base,
                     at(base, "overflow_rate", i), at(base, "underflow_rate", i));
        }
    });
    return s;
}

// One table for all groups; columns are the rules in order of first appearance.
section disagreement_section(const record& tail) {
    const std::vector<record> groups = records_in(tail, "disagreement");
    const std::size_t shown = std::min(shown_matrices, groups.size());
    section s{.heading = "Blocks whose scale bytes differ between scale rules, %",
              .columns = columns_of({"rule"}),
              .group_field = "group"};
    for (std::size_t g = 0; g < shown; ++g) {
        std::vector<std::string> rules;
        for (const std::string& recipe : texts_in(groups[g], "recipes")) {
            const auto known = recipe_named(recipe);
            rules.emplace_back(known ? known->rule->name : recipe);
        }
        report::heat_map map;
        map.value = axis_of("blocks with another scale", "", false, true);
        map.rows = map.columns = texts_in(groups[g], "recipes");
        map.cells.resize(rules.size());
        const list* rates = member<list>(groups[g], "scale_difference_rate");
        for (std::size_t a = 0; rates != nullptr && a < std::min(rules.size(), rates->size());
             ++a) {
            const auto known = std::ranges::find(s.columns, rules[a], &column::title);
            if (known == s.columns.end()) {
                s.columns.push_back({"to_" + rules[a], rules[a], cell::share});
            }
            record row{{"group", text_of(groups[g], "group")}, {"rule", rules[a]}};
            const list* rate = std::get_if<list>(&(*rates)[a]);
            for (std::size_t b = 0; rate != nullptr && b < std::min(rules.size(), rate->size());
                 ++b) {
                map.cells[a].push_back(number_of((*rate)[b]));
                if (a != b) row.emplace_back("to_" + rules[b], (*rate)[b]);
            }
            s.rows.push_back(std::move(row));
        }
        if (g >= drawn_matrices) continue;
        add_figure(
            s, "disagreement",
            fmt::format("Scales that differ between the rules of {}", text_of(groups[g], "group")),
            "Of the blocks, the share whose scale byte differs between two rules.", std::move(map));
    }
    if (shown < groups.size()) {
        s.notes.push_back(fmt::format("{} more groups are in --json.", groups.size() - shown));
    }
    return s;
}

section phase_section(const record& phase) {
    const list* factors = member<list>(phase, "factors");
    const std::size_t count = factors == nullptr ? 0 : factors->size();
    section s{.heading = fmt::format("Scale phase: the tensors times 2^(i/{}), i = 0 to {}", count,
                                     std::max<std::size_t>(1, count) - 1),
              .columns = columns_of({column_of("among", "among the rules of"), "least_error",
                                     "second", column_of("win", "ahead\nby %", cell::share),
                                     column_of("least", "least\nratio", cell::fixed),
                                     column_of("greatest", "greatest\nratio", cell::fixed),
                                     column_of("reversed", "reversed\nphases", cell::integer)})};
    for (const record& g : records_in(phase, "groups")) {
        const record* k = member<record>(g, "contest");
        if (k == nullptr) continue;
        const std::string name = recipe_of(g, phases_width, "group");
        s.add(name.empty() ? "all cells" : name, recipe_of(*k, phases_width, "best"),
              recipe_of(*k, phases_width, "second"), report::value_of(*k, "win"),
              report::value_of(*k, "least_ratio"), report::value_of(*k, "greatest_ratio"),
              report::value_of(*k, "reversed"));
    }
    if (s.rows.empty()) {
        s.columns.clear();
        s.notes = {
            "No two cells have an error in every phase on the same tensors, so there is nothing "
            "to compare."};
        return s;
    }
    s.notes = {
        "Ratio: geometric mean over tensors of the second's R-MSE over the first's, phase by "
        "phase; "
        "tensors that a cell quantizes exactly, or that a factor carries beyond float32, are left "
        "out."};
    return s;
}

section crest_section(const record& tail) {
    return {
        .heading = "Crest factors, max |x| / rms, of what is quantized",
        .columns = columns_of({"transform", column_of("mean", "geometric\nmean", cell::significant),
                               column_of("largest", "largest", cell::significant),
                               column_of("tensor", "in tensor")}),
        .rows = records_in(tail, "crest_factors")};
}

section worst_section(const record& tail) {
    section s{.columns = columns_of({"recipe", "rmse", "sqnr_db", "clamp_rate", "underflow_rate"}),
              .rows = records_in(tail, "worst_tensors"),
              .group_field = "tensor"};
    if (s.rows.empty()) return s;
    const std::string first = text_of(s.rows.front(), "recipe");
    s.heading = "Tensors with the largest relative error under " + first;
    for (record& r : s.rows) {
        const bool other = text_of(r, "recipe") != first;
        show(r, "recipe", recipe_of(r, worst_width) + (other ? " (best there)" : ""));
    }
    return s;
}

// One reason for leaving out, in one row for all tensors and recipes.
class left_out_rows {
  public:
    void add(const std::string& tensor, const std::string& recipe, const std::string& reason) {
        const auto at = std::ranges::find(rows_, reason, &row::reason);
        row& r = at == rows_.end() ? rows_.emplace_back() : *at;
        r.reason = reason;
        r.tensors.add(tensor);
        r.recipes.add(recipe);
    }
    void add(const std::vector<record>& all) {
        for (const record& r : all)
            add(text_of(r, "tensor"), text_of(r, "recipe"), text_of(r, "reason"));
    }

    section take() const {
        section s = left_out_section();
        for (const row& r : rows_) s.add(r.tensors.words(), r.recipes.words(), r.reason);
        return s;
    }

  private:
    // Names, of which the first is shown.
    struct name_set {
        std::string first;
        std::set<std::string> all;

        void add(const std::string& name) {
            if (all.empty()) first = name;
            all.insert(name);
        }
        std::string words() const {
            if (all.size() < 2) return first;
            return fmt::format("{} and {} more", first, all.size() - 1);
        }
    };
    struct row {
        std::string reason;
        name_set tensors, recipes;
    };
    std::vector<row> rows_;
};

section reasons_of(const result_set& of) {
    left_out_rows rows;
    rows.add(records_in(*of.tail, "left_out"));
    rows.add(records_in(*of.tail, "skipped"));
    for (const analysis::result& r : *of.results) {
        if (r.elements == 0) rows.add(r.of->tensor, "", "it has no elements");
    }
    return rows.take();
}

}  // namespace

bool is_comparison(const result_set& of) { return report::find(*of.tail, "ranking") != nullptr; }

std::vector<section> compare_view(const result_set& of, const compare_view_options& view) {
    std::vector<section> sections;
    if (!is_comparison(of)) return sections;
    const record& tail = *of.tail;
    if (count_of(tail, "ranked_tensors") + count_of(tail, "not_everywhere") == 0) {
        sections.push_back({.heading = "No numeric tensor to compare recipes on"});
    } else {
        sections.push_back(ranking_section(tail, view.top));
        put(sections, roles_section(tail));
        put(sections, layers_section(of, view.layers));
        put(sections, disagreement_section(tail));
        if (const record* phase = member<record>(tail, "phase")) {
            sections.push_back(phase_section(*phase));
        }
        put(sections, crest_section(tail));
        put(sections, worst_section(tail));
    }
    put(sections, reasons_of(of));
    return sections;
}

}  // namespace mx::pages
