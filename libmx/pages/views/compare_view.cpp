// SPDX-License-Identifier: Apache-2.0
#include "libmx/pages/views/compare_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "libmx/pages/views/compare_words.hpp"
#include "libmx/pages/views/values.hpp"
#include "libmx/report/cells.hpp"
#include "libmx/report/text.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::pages {
namespace {

using namespace compare;
using report::cell;
using report::column;

// Width that a page of 100 columns leaves for recipes.
constexpr std::size_t ranking_room = 51;  // less if there are more figures
constexpr std::size_t roles_room = 23;
constexpr std::size_t layers_room = 31;
constexpr std::size_t phases_room = 24;
constexpr std::size_t worst_room = 60;
// The largest number of matrices of scale disagreement.
constexpr std::size_t shown_matrices = 8;

std::string name_of(const sweep_plan& plan, std::size_t cell, std::size_t room) {
    return report::breakable(plan.cells[cell].name, room);
}

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
    bool regret = false;
    for (std::size_t place = 0; place < count; ++place) {
        const standing& one = c.overall.cells[place];
        seeds = seeds || (one.rmse_ratio && one.rmse_ratio->interval);
        parts = parts || one.rates[rate_index("clamp_error_share")];
        regret = regret || one.rates[rate_index("regret_share")];
    }
    const std::size_t room =
        ranking_room - (seeds ? 9u : 0u) - (parts ? 16u : 0u) - (regret ? 8u : 0u);
    for (std::size_t place = 0; place < count; ++place) {
        const standing& one = c.overall.cells[place];
        report::record row = standing_record(plan, one);
        row.front().second = name_of(plan, one.cell, room);
        row.emplace_back("mark",
                         fmt::format("{}{}", c.best[place] ? "*" : "", c.front[place] ? "P" : ""));
        if (one.exact) show(row, "sqnr_db", "exact");
        s.rows.push_back(std::move(row));
    }
    s.columns = ranking_columns(seeds, parts, regret);
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
    if (regret) s.notes.emplace_back(regret_note);
    if (parts) {
        s.notes.push_back(
            "Error: shares of the squared error in clamped elements and in those that became "
            "zero, %; the rest is the grid's.");
    }
    return s;
}

report::section roles_section(const sweep_plan& plan, const comparison& c) {
    report::section s{.heading = "Best cell by role",
                      .columns = columns_of({column_of("role", "role"), "tensors", "best", "ratio",
                                             "wins", "second", "second_ratio"})};
    const auto ratio = [](const standing& one) {
        if (one.exact) return text("exact");
        return one.rmse_ratio ? real(one.rmse_ratio->mean) : undefined();
    };
    for (const role_ranking& r : c.roles) {
        const standing& best = r.ranks.cells.front();
        const std::size_t tensors =
            r.ranks.over.not_everywhere == 0 ? r.tensors.size() : r.ranks.over.tensors.size();
        s.add(r.role, tensors, name_of(plan, best.cell, roles_room), ratio(best), best.wins);
        if (r.ranks.cells.size() > 1) {
            const standing& second = r.ranks.cells[1];
            s.rows.back().emplace_back("second", name_of(plan, second.cell, roles_room));
            s.rows.back().emplace_back("second_ratio", ratio(second));
        }
    }
    s.notes.push_back(
        "Least error only. For a recommendation of what to quantize and ship, see mx analyze.");
    return s;
}

report::section layers_section(const sweep_plan& plan, const comparison& c) {
    report::section s{
        .heading = "Layer by layer",
        .columns = columns_of({column_of("layer", "layer", cell::integer), "best", "rmse",
                               column_of("ratio", "ratio"), "overflow_rate", "underflow_rate",
                               column_of("baseline", "baseline's\nR-MSE", cell::significant),
                               column_of("base_overflow", "over-\nflow %", cell::share),
                               column_of("base_underflow", "under-\nflow %", cell::share)}),
        .group_field = "series"};
    const auto overflow = &analysis::result::overflow_rate;
    const auto underflow = &analysis::result::underflow_rate;
    for (const layer_series& one : c.series) {
        for (const std::size_t t : one.tensors) {
            const auto best = best_on(plan, c.table, t);
            if (!best) continue;
            const compare::cell& winner = plan.cells[*best];
            const auto rmse = rmse_of(c.table, t, winner);
            const auto base = rmse_of(c.table, t, plan.baseline);
            const auto cells_of = [&](const compare::cell& of, const auto& figure) {
                return figure_of(c.table, t, of, figure);
            };
            s.add_to(one.name, c.table.tensors[t].of->layer, name_of(plan, *best, layers_room),
                     rmse, base && *base > 0 ? std::optional(*rmse / *base) : std::nullopt,
                     cells_of(winner, overflow), cells_of(winner, underflow), base,
                     cells_of(plan.baseline, overflow), cells_of(plan.baseline, underflow));
        }
    }
    return s;
}

// One table for all groups; columns are the rules in order of first appearance.
report::section disagreement_section(const sweep_plan& plan, const comparison& c) {
    const std::size_t shown = std::min(shown_matrices, c.scale_groups.size());
    report::section s{.heading = "Blocks whose scale bytes differ between scale rules, %",
                      .columns = columns_of({"rule"}),
                      .group_field = "group"};
    for (std::size_t g = 0; g < shown; ++g) {
        const std::vector<std::size_t>& cells = c.scale_groups[g].cells;
        const auto rule = [&](std::size_t i) {
            return std::string(plan.cells[cells[i]].recipe.rule->name);
        };
        for (std::size_t a = 0; a < cells.size(); ++a) {
            const bool known = std::ranges::any_of(
                s.columns, [&](const column& one) { return one.title == rule(a); });
            if (!known) s.columns.push_back({"to_" + rule(a), rule(a), cell::share});
            report::record row{{"group", c.scale_groups[g].name}, {"rule", rule(a)}};
            for (std::size_t b = 0; b < cells.size() && c.scale_differences[g].blocks > 0; ++b) {
                if (a != b) row.emplace_back("to_" + rule(b), scale_difference(c, g, a, b));
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
    report::section s{
        .heading = fmt::format("Scale phase: the tensors times 2^(i/{0}), i = 0 to {1}",
                               phase_count, phase_count - 1),
        .columns = columns_of({column_of("among", "among the rules of"), "least_error", "second",
                               column_of("win", "ahead\nby %", cell::share),
                               column_of("least", "least\nratio", cell::fixed),
                               column_of("greatest", "greatest\nratio", cell::fixed),
                               column_of("reversed", "reversed\nphases", cell::integer)})};
    for (const phase_group& g : c.phases) {
        if (!g.contest) continue;
        const phase_contest& k = *g.contest;
        s.add(g.name.empty() ? "all cells" : report::breakable(g.name, phases_room),
              name_of(plan, k.best, phases_room), name_of(plan, k.second, phases_room), k.win(),
              k.least, k.greatest, k.reversed);
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

// One reason for leaving out, in one row for all tensors and recipes.
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

    report::section take() const {
        report::section s = left_out_section();
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

report::section left_out_of(const sweep_plan& plan, const comparison& c,
                            const std::vector<engine::skipped_tensor>& skipped) {
    left_out_rows rows;
    for (const left_out_cell& l : plan.left_out) rows.add("", l.recipe, l.reason);
    for (const engine::skipped_tensor& t : skipped) rows.add(t.tensor, t.recipe, t.reason);
    for (std::size_t t = 0; t < c.table.tensors.size(); ++t) {
        const bool empty = std::ranges::all_of(
            c.table.all_of(t), [](const analysis::result& r) { return r.elements == 0; });
        if (empty) rows.add(c.table.tensors[t].of->tensor, "", "it has no elements");
    }
    return rows.take();
}

constexpr std::size_t shown_tensors = 10;

// A recipe's transform in short: "hadamard of 32".
std::string transform_of(const codec::recipe& r) {
    switch (r.rotate.what) {
        case transform::kind::none:
            return "none";
        case transform::kind::hadamard:
            return fmt::format("hadamard of {}", r.rotate.size);
        case transform::kind::random_hadamard:
            return fmt::format("random-hadamard of {}, seed {}", r.rotate.size, r.rotate.seed);
        case transform::kind::matrix:
            return fmt::format("matrix of {}", r.rotate.size);
    }
    return {};
}

// The ten tensors with the largest relative error under the first cell of the ranking, and the best
// cell of each if that is another one. No rows for a single tensor.
report::section worst_section(const sweep_plan& plan, const comparison& c) {
    report::section s;
    if (c.tensors.size() < 2 || c.overall.cells.empty()) return s;
    const std::size_t first = c.overall.cells.front().cell;
    const std::size_t run = plan.cells[first].runs.front();
    std::vector<std::pair<double, std::size_t>> losses;
    for (const std::size_t t : c.tensors) {
        const double nrmse = c.table.of(t, run).nrmse;
        if (nrmse > 0) losses.emplace_back(nrmse, t);
    }
    std::ranges::stable_sort(losses,
                             [](const auto& a, const auto& b) { return a.first > b.first; });
    if (losses.size() > shown_tensors) losses.resize(shown_tensors);
    s.heading =
        fmt::format("Tensors with the largest relative error under {}", plan.cells[first].name);
    s.columns = columns_of({"recipe", "rmse", "sqnr_db", "clamp_rate", "underflow_rate"});
    s.group_field = "tensor";
    const auto add = [&](std::size_t t, std::size_t which, const std::string& remark) {
        const analysis::result& r = c.table.of(t, plan.cells[which].runs.front());
        s.add_to(c.table.tensors[t].of->tensor, name_of(plan, which, worst_room) + remark, r.rmse,
                 r.sqnr_db, r.clamp_rate, r.underflow_rate);
    };
    for (const auto& [loss, t] : losses) {
        add(t, first, "");
        const std::optional<std::size_t> best = best_on(plan, c.table, t);
        const auto here = rmse_of(c.table, t, plan.cells[first]);
        const auto least = best ? rmse_of(c.table, t, plan.cells[*best]) : here;
        if (here && least && *least < *here * (1 - same_rmse)) add(t, *best, " (best there)");
    }
    return s;
}

// The crest factors of the tensors after each transform. No rows without transforms.
report::section crest_section(const sweep_plan& plan, const comparison& c) {
    report::section s;
    bool rotates = false;
    std::vector<std::pair<std::string, std::size_t>> transforms;  // and a run with it
    for (const compare::cell& one : plan.cells) {
        rotates = rotates || !(one.recipe.rotate == transform::rotation{});
        const std::string name = transform_of(one.recipe);
        const auto known =
            std::ranges::find_if(transforms, [&](const auto& t) { return t.first == name; });
        if (known == transforms.end()) transforms.emplace_back(name, one.runs.front());
    }
    if (!rotates) return s;
    s.heading = "Crest factors, max |x| / rms, of what is quantized";
    s.columns = columns_of({"transform", column_of("mean", "geometric\nmean", cell::significant),
                            column_of("largest", "largest", cell::significant),
                            column_of("tensor", "in tensor")});
    for (const auto& [name, run] : transforms) {
        double logs = 0;
        double count = 0;
        double largest = 0;
        std::size_t where = 0;
        for (const std::size_t t : c.tensors) {
            const double crest = c.table.of(t, run).crest_factor;
            if (std::isnan(crest)) continue;
            logs += std::log(crest);
            ++count;
            if (crest <= largest) continue;
            largest = crest;
            where = t;
        }
        if (count == 0) continue;
        s.add(name, std::exp(logs / count), largest, c.table.tensors[where].of->tensor);
    }
    return s;
}

}  // namespace

std::vector<report::column> ranking_columns(bool seeds, bool parts, bool regret) {
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

std::vector<report::section> compare_sections(const sweep_plan& plan, const comparison& c,
                                              const std::vector<engine::skipped_tensor>& skipped,
                                              const compare_view_options& view) {
    std::vector<report::section> sections;
    put(sections, {.heading = ranking_heading, .notes = compare_verdict(plan, c)});
    if (c.tensors.empty()) {
        sections.push_back({.heading = "No numeric tensor to compare recipes on"});
    } else {
        sections.push_back(ranking_section(plan, c, view.top));
        put(sections, roles_section(plan, c));
        if (!c.series.empty() && (view.layers || c.series.size() == 1)) {
            sections.push_back(layers_section(plan, c));
        }
        put(sections, disagreement_section(plan, c));
        if (!c.phases.empty()) sections.push_back(phase_section(plan, c));
        put(sections, crest_section(plan, c));
        put(sections, worst_section(plan, c));
    }
    put(sections, left_out_of(plan, c, skipped));
    return sections;
}

}  // namespace mx::pages
