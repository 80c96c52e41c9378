// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/comparison.hpp"

#include <algorithm>
#include <utility>

#include "libmx/analysis/scale_pairs.hpp"
#include "libmx/report/members.hpp"

namespace mx::compare {
namespace {

using report::record;
using report::tally;
using report::to_list;
using report::to_value;

report::value mean_of(const std::optional<base::estimate>& e) {
    return e ? e->mean : report::value();
}
report::value interval_of(const std::optional<base::estimate>& e) {
    return e ? to_value(e->interval) : report::value();
}

report::list numbers(const std::vector<double>& values) { return {values.begin(), values.end()}; }

record ranked(const sweep_plan& plan, const comparison& c, std::size_t place) {
    const standing& s = c.overall.cells[place];
    record r{{"rank", tally(place + 1)},
             {"best", bool{c.best[place]}},
             {"pareto", bool{c.front[place]}}};
    for (auto& member : standing_record(plan, s)) r.push_back(std::move(member));
    return r;
}

report::value pareto_of(const sweep_plan& plan, const comparison& c) {
    report::list front;
    for (std::size_t place = 0; place < c.front.size(); ++place) {
        if (!c.front[place]) continue;
        const standing& s = c.overall.cells[place];
        front.emplace_back(record{{"recipe", plan.cells[s.cell].name},
                                  {"bits_per_element", s.bits_per_element},
                                  {"sqnr_db", mean_of(s.sqnr_db)}});
    }
    return front;
}

report::value classes_of(const sweep_plan& plan, const comparison& c) {
    return to_list(c.classes, [&](const bits_class& k) {
        const standing& s = c.overall.cells[k.best];
        return record{{"bits", tally(k.bits)},
                      {"cells", tally(k.cells)},
                      {"best", plan.cells[s.cell].name},
                      {"bits_per_element", s.bits_per_element},
                      {"rmse_ratio", mean_of(s.rmse_ratio)},
                      {"sqnr_db", mean_of(s.sqnr_db)}};
    });
}

report::value roles_of(const sweep_plan& plan, const comparison& c) {
    const auto standing_of = [&](const standing& s) { return standing_record(plan, s); };
    return to_list(c.roles, [&](const role_ranking& role) {
        return record{{"role", role.role},
                      {"tensors", tally(role.tensors.size())},
                      {"ranked_tensors", tally(role.ranks.over.tensors.size())},
                      {"contests", role.ranks.contests},
                      {"best", plan.cells[role.ranks.cells.front().cell].name},
                      {"ranking", to_list(role.ranks.cells, standing_of)}};
    });
}

// The figures of a series under a cell.
record series_record(const comparison& c, const layer_series& s, const cell& of) {
    record r{{"file", s.file},
             {"series", s.name},
             {"role", s.role},
             {"recipe", of.name},
             {"layers",
              to_list(s.tensors, [&](std::size_t t) { return *c.table.tensors[t].of->layer; })}};
    for (const series_figure& f : series_figures) {
        r.emplace_back(std::string(f.name), to_list(s.tensors, [&](std::size_t t) {
                           return to_value(figure_of(c.table, t, of, f.figure));
                       }));
    }
    return r;
}

report::value disagreement_of(const sweep_plan& plan, const comparison& c) {
    report::list all;
    for (std::size_t g = 0; g < c.scale_groups.size(); ++g) {
        const std::vector<std::size_t>& cells = c.scale_groups[g].cells;
        report::list names, matrix;
        for (std::size_t a = 0; a < cells.size(); ++a) {
            names.emplace_back(plan.cells[cells[a]].name);
            report::list row;
            for (std::size_t b = 0; b < cells.size(); ++b) {
                row.push_back(scale_difference(c, g, a, b));
            }
            matrix.emplace_back(std::move(row));
        }
        all.emplace_back(record{{"group", c.scale_groups[g].name},
                                {"recipes", std::move(names)},
                                {"blocks", tally(c.scale_differences[g].blocks)},
                                {"scale_difference_rate", std::move(matrix)}});
    }
    return all;
}

// A contest across the phases, null if there is none.
report::value contest_of(const sweep_plan& plan, const std::optional<phase_contest>& k) {
    if (!k) return {};
    return record{{"best", plan.cells[k->best].name},
                  {"second", plan.cells[k->second].name},
                  {"win", k->win()},
                  {"swing", k->swing()},
                  {"within_swing", k->within_swing()},
                  {"reversed", tally(k->reversed)},
                  {"least_ratio", k->least},
                  {"greatest_ratio", k->greatest},
                  {"ratio", numbers(k->ratio)}};
}

report::value errors_of(const sweep_plan& plan, const std::vector<std::size_t>& cells,
                        const std::vector<std::vector<double>>& errors) {
    report::list all;
    for (std::size_t i = 0; i < errors.size(); ++i) {
        all.emplace_back(
            record{{"recipe", plan.cells[cells[i]].name}, {"nrmse", numbers(errors[i])}});
    }
    return all;
}

report::value phase_of(const sweep_plan& plan, const comparison& c) {
    if (c.phases.empty()) return {};
    const auto group = [&](const phase_group& g) {
        return record{{"group", g.name.empty() ? report::value() : report::value(g.name)},
                      {"contest", contest_of(plan, g.contest)},
                      {"cells", errors_of(plan, g.cells, g.errors)}};
    };
    report::list tensors;
    for (const std::size_t t : c.tensors) {
        report::list contests;
        report::value cells;
        for (const phase_group& g : c.phases) {
            const auto errors = phase_errors(c.table, plan, g.cells, std::span(&t, 1));
            contests.push_back(contest_of(plan, judge_phases(g.cells, errors)));
            if (g.name.empty()) cells = errors_of(plan, g.cells, errors);
        }
        tensors.emplace_back(record{{"file", c.table.tensors[t].of->file},
                                    {"tensor", c.table.tensors[t].of->tensor},
                                    {"contests", std::move(contests)},
                                    {"cells", std::move(cells)}});
    }
    return record{{"factors", to_list(phase_factors())},
                  {"groups", to_list(c.phases, group)},
                  {"tensors", std::move(tensors)}};
}

}  // namespace

report::value scale_difference(const comparison& c, std::size_t group, std::size_t a,
                               std::size_t b) {
    const analysis::scale_pairs& counts = c.scale_differences[group];
    const std::size_t pair =
        analysis::pair_index(std::min(a, b), std::max(a, b), c.scale_groups[group].cells.size());
    return report::share(a == b ? 0 : counts.differ[pair], counts.blocks);
}

record standing_record(const sweep_plan& plan, const standing& s) {
    const cell& c = plan.cells[s.cell];
    record r{{"recipe", c.name},
             {"seeds", is_random(c.recipe) ? tally(c.runs.size()) : report::value()},
             {"tensors", s.tensors},
             {"rmse_ratio", mean_of(s.rmse_ratio)},
             {"rmse_ratio_interval", interval_of(s.rmse_ratio)},
             {"compared", s.compared},
             {"only_exact", s.only_exact},
             {"only_baseline_exact", s.only_baseline_exact},
             {"exact", s.exact},
             {"wins", s.wins},
             {"nrmse", mean_of(s.nrmse)},
             {"sqnr_db", mean_of(s.sqnr_db)},
             {"sqnr_db_interval", interval_of(s.sqnr_db)},
             {"mean_sqnr_db", mean_of(s.mean_sqnr_db)},
             {"bits_per_element", s.tensors == 0 ? report::value() : s.bits_per_element}};
    for (std::size_t i = 0; i < pooled_rates.size(); ++i) {
        r.emplace_back(std::string(pooled_rates[i].name), to_value(s.rates[i]));
    }
    return r;
}

report::record_list series_records(std::shared_ptr<const sweep_plan> plan,
                                   std::shared_ptr<const comparison> c) {
    const std::size_t count = c->series.size() * plan->cells.size();
    return {count, [plan = std::move(plan), c = std::move(c)](std::size_t i) {
                const std::size_t cells = plan->cells.size();
                return series_record(*c, c->series[i / cells], plan->cells[i % cells]);
            }};
}

record comparison_members(const sweep_plan& plan, const comparison& c) {
    report::list ranking;
    for (std::size_t place = 0; place < c.overall.cells.size(); ++place) {
        ranking.emplace_back(ranked(plan, c, place));
    }
    const auto left_out = [](const left_out_cell& l) {
        return record{{"recipe", l.recipe}, {"reason", l.reason}};
    };
    return {{"baseline", plan.baseline.name},
            {"ranked_tensors", tally(c.overall.over.tensors.size())},
            {"not_everywhere", c.overall.over.not_everywhere},
            {"contests", c.overall.contests},
            {"ranking", std::move(ranking)},
            {"pareto", pareto_of(plan, c)},
            {"best_by_bits", classes_of(plan, c)},
            {"roles", roles_of(plan, c)},
            {"series", report::list()},
            {"disagreement", disagreement_of(plan, c)},
            {"phase", phase_of(plan, c)},
            {"left_out", to_list(plan.left_out, left_out)}};
}

}  // namespace mx::compare
