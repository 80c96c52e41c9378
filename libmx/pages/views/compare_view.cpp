// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/compare_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "libmx/engine/roles.hpp"
#include "libmx/pages/views/compare_tensors.hpp"
#include "libmx/pages/views/compare_words.hpp"
#include "libmx/pages/views/recipe_cell.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/text.hpp"
#include "libmx/studies/compare/records.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"

namespace mx::pages {
namespace {

using namespace compare;
using report::cell;
using report::column;

// Columns that a page of 100 leaves for recipes.
constexpr std::size_t ranking_room = 51;  // less where there are more figures
constexpr std::size_t roles_room = 23;
constexpr std::size_t layers_room = 31;
constexpr std::size_t phases_room = 24;
// Matrices of scale disagreement that are shown.
constexpr std::size_t shown_matrices = 8;

std::string name_of(const sweep_plan& plan, std::size_t cell, std::size_t room) {
    return breakable(plan.cells[cell].name, room);
}

report::value maybe(const std::optional<double>& x) { return x ? real(*x) : undefined(); }

report::section ranking_section(const sweep_plan& plan, const comparison& c, std::size_t top) {
    const std::size_t count = std::min(top, c.overall.cells.size());
    report::section s;
    const common_tensors& over = c.overall.over;
    std::string tensors = report::plural(c.tensors.size(), "tensor");
    if (over.not_everywhere > 0) {
        const auto measured = static_cast<std::int64_t>(over.tensors.size()) + over.not_everywhere;
        tensors = fmt::format("{} of {}", over.tensors.size(), report::plural(measured, "tensor"));
    }
    s.heading = fmt::format("{} over {}; R-MSE relative to {}",
                            report::plural(plan.cells.size(), "cell"), tensors, plan.baseline.name);
    if (count < c.overall.cells.size()) {
        s.heading += fmt::format(" (the first {}; --top N for more)", count);
    }
    bool seeds = false;
    bool parts = false;
    for (std::size_t place = 0; place < count; ++place) {
        const standing& one = c.overall.cells[place];
        seeds = seeds || (one.rmse_ratio && one.rmse_ratio->interval);
        parts = parts || one.rates[rate_index("clamp_error_share")];
    }
    const std::size_t room = ranking_room - (seeds ? 9u : 0u) - (parts ? 16u : 0u);
    for (std::size_t place = 0; place < count; ++place) {
        const standing& one = c.overall.cells[place];
        report::record row = standing_record(plan, one);
        row.front().second = name_of(plan, one.cell, room);
        row.emplace_back("mark",
                         fmt::format("{}{}", c.best[place] ? "*" : "", c.front[place] ? "P" : ""));
        if (one.exact) {
            for (auto& [name, v] : row) {
                if (name == "sqnr_db") v = text("exact");
            }
        }
        s.rows.push_back(std::move(row));
    }
    s.columns = {{"mark", ""},
                 {"recipe", "recipe"},
                 {"bits_per_element", "bits", cell::fixed, 2},
                 {"rmse_ratio", "R-MSE\nratio", cell::significant}};
    if (seeds) s.columns.push_back({"rmse_ratio_interval", "+-", cell::significant, 2});
    s.columns.push_back({"wins", "wins", cell::integer});
    s.columns.push_back({"sqnr_db", "SQNR\ndB", cell::fixed, 2});
    s.columns.push_back({"clamp_rate", "clamp\n%", cell::share});
    s.columns.push_back({"underflow_rate", "under-\nflow %", cell::share});
    if (parts) {
        s.columns.push_back({"clamp_error_share", "error:\nclamp", cell::share});
        s.columns.push_back({"underflow_error_share", "under-\nflow", cell::share});
    }
    s.notes.push_back(fmt::format(
        "Ratio: geometric mean over {}, those left out that some cell quantizes exactly. Wins: "
        "tensors with the smallest R-MSE (of {}; ties count for all). SQNR: over all elements "
        "together. *: least ratio; P: on the Pareto front of bits against SQNR.",
        report::plural(over.compared.size(), "tensor"), c.overall.contests));
    if (seeds) {
        s.notes.push_back(
            "+-: 95 % interval of the mean over seeds (Student's t), where random numbers are "
            "drawn.");
    }
    if (parts) {
        s.notes.push_back(
            "Error: shares of the squared error in clamped elements and in those that became "
            "zero, %; the rest is the grid's.");
    }
    return s;
}

report::section roles_section(const sweep_plan& plan, const comparison& c) {
    report::section s;
    s.heading = "Best cell by role";
    s.columns = {{"role", "role"},
                 {"tensors", "tensors", cell::integer},
                 {"recipe", "best"},
                 {"ratio", "R-MSE\nratio", cell::significant},
                 {"wins", "wins", cell::integer},
                 {"second", "second"},
                 {"second_ratio", "R-MSE\nratio", cell::significant}};
    const auto ratio = [](const standing& one) {
        if (one.exact) return text("exact");
        return one.rmse_ratio ? real(one.rmse_ratio->mean) : undefined();
    };
    for (const role_ranking& r : c.roles) {
        const standing& best = r.ranks.cells.front();
        report::record row{
            {"role", r.role},
            {"tensors", integer(r.ranks.over.not_everywhere == 0 ? r.tensors.size()
                                                                 : r.ranks.over.tensors.size())},
            {"recipe", name_of(plan, best.cell, roles_room)},
            {"ratio", ratio(best)},
            {"wins", integer(best.wins)}};
        if (r.ranks.cells.size() > 1) {
            row.emplace_back("second", name_of(plan, r.ranks.cells[1].cell, roles_room));
            row.emplace_back("second_ratio", ratio(r.ranks.cells[1]));
        }
        s.rows.push_back(std::move(row));
    }
    std::vector<std::string> kept;
    for (const role_ranking& r : c.roles) {
        if (engine::keeps_precision(r.role)) kept.push_back(r.role);
    }
    if (!kept.empty()) {
        s.notes.push_back(
            fmt::format("Least error only. Not recommended for {}: keep the precision stored.",
                        fmt::join(kept, ", ")));
    }
    return s;
}

report::section layers_section(const sweep_plan& plan, const comparison& c) {
    report::section s;
    s.heading = "Layer by layer";
    s.columns = {{"layer", "layer", cell::integer},
                 {"recipe", "best"},
                 {"rmse", "R-MSE", cell::significant},
                 {"ratio", "ratio", cell::significant},
                 {"overflow", "over-\nflow %", cell::share},
                 {"underflow", "under-\nflow %", cell::share},
                 {"baseline", "baseline's\nR-MSE", cell::significant},
                 {"base_overflow", "over-\nflow %", cell::share},
                 {"base_underflow", "under-\nflow %", cell::share}};
    s.group_field = "series";
    const auto overflow = &analysis::result::overflow_rate;
    const auto underflow = &analysis::result::underflow_rate;
    for (const layer_series& one : c.series) {
        for (const std::size_t t : one.tensors) {
            const auto best = best_on(plan, c.table, t);
            if (!best) continue;
            const compare::cell& winner = plan.cells[*best];
            const auto rmse = rmse_of(c.table, t, winner);
            const auto base = rmse_of(c.table, t, plan.baseline);
            s.rows.push_back(
                {{"series", one.name},
                 {"layer", integer(*c.table.tensors[t].of->layer)},
                 {"recipe", name_of(plan, *best, layers_room)},
                 {"rmse", maybe(rmse)},
                 {"ratio", base && *base > 0 ? real(*rmse / *base) : undefined()},
                 {"overflow", maybe(figure_of(c.table, t, winner, overflow))},
                 {"underflow", maybe(figure_of(c.table, t, winner, underflow))},
                 {"baseline", maybe(base)},
                 {"base_overflow", maybe(figure_of(c.table, t, plan.baseline, overflow))},
                 {"base_underflow", maybe(figure_of(c.table, t, plan.baseline, underflow))}});
        }
    }
    return s;
}

// One table for all groups; columns are the rules in the order they come up.
report::section disagreement_section(const sweep_plan& plan, const comparison& c) {
    const std::size_t shown = std::min(shown_matrices, c.scale_groups.size());
    report::section s;
    s.heading = "Blocks whose scale bytes differ between scale rules, %";
    s.columns = {{"rule", "rule"}};
    s.group_field = "group";
    for (std::size_t g = 0; g < shown; ++g) {
        const std::vector<std::size_t>& cells = c.scale_groups[g].cells;
        const analysis::scale_pairs& counts = c.scale_differences[g];
        const auto rule = [&](std::size_t i) {
            return std::string(plan.cells[cells[i]].recipe.rule->name);
        };
        for (std::size_t a = 0; a < cells.size(); ++a) {
            const bool known = std::ranges::any_of(
                s.columns, [&](const column& one) { return one.title == rule(a); });
            if (!known) s.columns.push_back({"to_" + rule(a), rule(a), cell::share});
            report::record row{{"group", c.scale_groups[g].name}, {"rule", rule(a)}};
            for (std::size_t b = 0; b < cells.size() && counts.blocks > 0; ++b) {
                if (a == b) continue;
                const std::uint64_t differ =
                    counts
                        .differ[analysis::pair_index(std::min(a, b), std::max(a, b), cells.size())];
                row.emplace_back("to_" + rule(b), real(static_cast<double>(differ) /
                                                       static_cast<double>(counts.blocks)));
            }
            s.rows.push_back(std::move(row));
        }
    }
    if (shown < c.scale_groups.size()) {
        s.notes.push_back(
            fmt::format("{} more groups are in --json.", c.scale_groups.size() - shown));
    }
    return s;
}

report::section phase_section(const sweep_plan& plan, const comparison& c) {
    report::section s;
    s.heading = fmt::format("Scale phase: the tensors times 2^(i/{0}), i = 0 to {1}", phase_count,
                            phase_count - 1);
    s.columns = {{"among", "among the rules of"},
                 {"best", "least error"},
                 {"second", "second"},
                 {"win", "ahead\nby %", cell::share},
                 {"least", "least\nratio", cell::fixed, 4},
                 {"greatest", "greatest\nratio", cell::fixed, 4},
                 {"reversed", "reversed\nphases", cell::integer}};
    for (const phase_group& g : c.phases) {
        if (!g.contest) continue;
        const phase_contest& k = *g.contest;
        s.rows.push_back(
            {{"among", g.name.empty() ? text("all cells") : text(breakable(g.name, phases_room))},
             {"best", name_of(plan, k.best, phases_room)},
             {"second", name_of(plan, k.second, phases_room)},
             {"win", real(k.win())},
             {"least", real(k.least)},
             {"greatest", real(k.greatest)},
             {"reversed", integer(k.reversed)}});
    }
    if (s.rows.empty()) {
        s.columns.clear();
        s.notes = {
            "No two cells have an error in every phase on the same tensors: there is nothing to "
            "compare."};
        return s;
    }
    s.notes = {
        "Ratio: geometric mean over tensors of the second's R-MSE over the first's, phase by "
        "phase; "
        "tensors that a cell quantizes exactly, or that a factor carries beyond float32, are left "
        "out."};
    return s;
}

// What is left out for one reason: a row, however many tensors and recipes it concerns.
class left_out_rows {
  public:
    void add(const std::string& tensor, const std::string& recipe, const std::string& reason) {
        const auto at =
            std::ranges::find_if(rows_, [&](const row& r) { return r.reason == reason; });
        row& r = at == rows_.end() ? rows_.emplace_back() : *at;
        r.reason = reason;
        r.tensors.add(tensor);
        r.recipes.add(recipe);
    }

    std::vector<report::record> take() const {
        std::vector<report::record> records;
        for (const row& r : rows_) {
            records.push_back({{"tensor", r.tensors.words()},
                               {"recipe", r.recipes.words()},
                               {"reason", r.reason}});
        }
        return records;
    }

  private:
    // Names, the first of which is shown.
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

report::section left_out_section(const sweep_plan& plan, const comparison& c,
                                 const std::vector<engine::skipped_tensor>& skipped) {
    report::section s;
    s.heading = "Left out";
    s.columns = {{"tensor", "tensor", cell::name}, {"recipe", "recipe"}, {"reason", "why"}};
    left_out_rows rows;
    for (const left_out_cell& l : plan.left_out) rows.add("", l.recipe, l.reason);
    for (const engine::skipped_tensor& t : skipped) rows.add(t.tensor, t.recipe, t.reason);
    for (const tensor_row& t : c.table.tensors) {
        const bool empty = std::ranges::all_of(
            t.at, [](const analysis::result* r) { return r == nullptr || r->elements == 0; });
        if (empty) rows.add(t.of->tensor, "", "it has no elements");
    }
    s.rows = rows.take();
    return s;
}

}  // namespace

std::vector<report::section> compare_sections(const sweep_plan& plan, const comparison& c,
                                              const std::vector<engine::skipped_tensor>& skipped,
                                              const compare_view_options& view) {
    std::vector<report::section> sections;
    if (c.tensors.empty()) {
        sections.push_back({"No numeric tensor to compare recipes on", {}, {}, {}, {}});
    } else {
        sections.push_back(ranking_section(plan, c, view.top));
        if (!c.roles.empty()) sections.push_back(roles_section(plan, c));
        if (!c.series.empty() && (view.layers || c.series.size() == 1)) {
            sections.push_back(layers_section(plan, c));
        }
        if (!c.scale_groups.empty()) sections.push_back(disagreement_section(plan, c));
        if (!c.phases.empty()) sections.push_back(phase_section(plan, c));
        report::section crest = crest_section(plan, c);
        if (!crest.rows.empty()) sections.push_back(std::move(crest));
        report::section worst = worst_section(plan, c);
        if (!worst.rows.empty()) sections.push_back(std::move(worst));
    }
    report::section left_out = left_out_section(plan, c, skipped);
    if (!left_out.rows.empty()) sections.push_back(std::move(left_out));
    std::vector<std::string> verdict = compare_verdict(plan, c);
    if (!verdict.empty()) sections.push_back({"Verdict", {}, {}, {}, std::move(verdict)});
    return sections;
}

}  // namespace mx::pages
