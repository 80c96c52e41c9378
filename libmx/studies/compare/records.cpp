// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/comparison.hpp"

#include <algorithm>

#include "libmx/analysis/scale_pairs.hpp"
#include "libmx/report/members.hpp"

namespace mx::compare {
namespace {

using report::tally;

report::value mean_of(const std::optional<base::estimate>& e) {
    return e ? report::value(e->mean) : report::value();
}
report::value interval_of(const std::optional<base::estimate>& e) {
    return e ? report::to_value(e->interval) : report::value();
}

report::list names_of(const sweep_plan& plan, const std::vector<std::size_t>& cells) {
    report::list names;
    for (const std::size_t c : cells) names.emplace_back(plan.cells[c].name);
    return names;
}

report::list numbers(const std::vector<double>& values) { return {values.begin(), values.end()}; }

report::record ranked(const sweep_plan& plan, const comparison& c, std::size_t place) {
    const standing& s = c.overall.cells[place];
    report::record r{{"rank", tally(place + 1)},
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
        front.emplace_back(report::record{{"recipe", plan.cells[s.cell].name},
                                          {"bits_per_element", s.bits_per_element},
                                          {"sqnr_db", mean_of(s.sqnr_db)}});
    }
    return front;
}

report::value classes_of(const sweep_plan& plan, const comparison& c) {
    report::list all;
    for (const bits_class& k : c.classes) {
        const standing& s = c.overall.cells[k.best];
        all.emplace_back(report::record{{"bits", std::int64_t{k.bits}},
                                        {"cells", tally(k.cells)},
                                        {"best", plan.cells[s.cell].name},
                                        {"bits_per_element", s.bits_per_element},
                                        {"rmse_ratio", mean_of(s.rmse_ratio)},
                                        {"sqnr_db", mean_of(s.sqnr_db)}});
    }
    return all;
}

report::value roles_of(const sweep_plan& plan, const comparison& c) {
    report::list all;
    for (const role_ranking& role : c.roles) {
        report::list cells;
        for (const standing& s : role.ranks.cells) cells.emplace_back(standing_record(plan, s));
        all.emplace_back(report::record{{"role", role.role},
                                        {"tensors", tally(role.tensors.size())},
                                        {"ranked_tensors", tally(role.ranks.over.tensors.size())},
                                        {"contests", role.ranks.contests},
                                        {"best", plan.cells[role.ranks.cells.front().cell].name},
                                        {"ranking", std::move(cells)}});
    }
    return all;
}

report::value series_of(const sweep_plan& plan, const comparison& c) {
    report::list all;
    for (const layer_series& s : c.series) {
        report::list layers;
        for (const std::size_t t : s.tensors) layers.emplace_back(*c.table.tensors[t].of->layer);
        for (const cell& one : plan.cells) {
            report::record r{{"file", s.file},
                             {"series", s.name},
                             {"role", s.role},
                             {"recipe", one.name},
                             {"layers", layers}};
            for (const series_figure& f : series_figures) {
                report::list values;
                for (const std::size_t t : s.tensors) {
                    values.push_back(report::to_value(figure_of(c.table, t, one, f.figure)));
                }
                r.emplace_back(std::string(f.name), std::move(values));
            }
            all.emplace_back(std::move(r));
        }
    }
    return all;
}

report::value disagreement_of(const sweep_plan& plan, const comparison& c) {
    report::list all;
    for (std::size_t g = 0; g < c.scale_groups.size(); ++g) {
        const std::vector<std::size_t>& cells = c.scale_groups[g].cells;
        report::list matrix;
        for (std::size_t a = 0; a < cells.size(); ++a) {
            report::list row;
            for (std::size_t b = 0; b < cells.size(); ++b) {
                row.push_back(scale_difference(c, g, a, b));
            }
            matrix.emplace_back(std::move(row));
        }
        all.emplace_back(report::record{{"group", c.scale_groups[g].name},
                                        {"recipes", names_of(plan, cells)},
                                        {"blocks", tally(c.scale_differences[g].blocks)},
                                        {"scale_difference_rate", std::move(matrix)}});
    }
    return all;
}

// A contest through the phases, null without one.
report::value contest_of(const sweep_plan& plan, const std::optional<phase_contest>& k) {
    if (!k) return {};
    return report::record{{"best", plan.cells[k->best].name},
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
            report::record{{"recipe", plan.cells[cells[i]].name}, {"nrmse", numbers(errors[i])}});
    }
    return all;
}

report::value phase_of(const sweep_plan& plan, const comparison& c) {
    if (c.phases.empty()) return {};
    report::list factors;
    for (const float f : phase_factors()) factors.emplace_back(double{f});
    report::list groups;
    for (const phase_group& g : c.phases) {
        groups.emplace_back(
            report::record{{"group", g.name.empty() ? report::value() : report::value(g.name)},
                           {"contest", contest_of(plan, g.contest)},
                           {"cells", errors_of(plan, g.cells, g.errors)}});
    }
    report::list tensors;
    for (const std::size_t t : c.tensors) {
        report::list contests;
        report::value cells;
        for (const phase_group& g : c.phases) {
            const auto errors = phase_errors(c.table, plan, g.cells, std::span(&t, 1));
            contests.push_back(contest_of(plan, judge_phases(g.cells, errors)));
            if (g.name.empty()) cells = errors_of(plan, g.cells, errors);
        }
        tensors.emplace_back(report::record{{"file", c.table.tensors[t].of->file},
                                            {"tensor", c.table.tensors[t].of->tensor},
                                            {"contests", std::move(contests)},
                                            {"cells", std::move(cells)}});
    }
    return report::record{{"factors", std::move(factors)},
                          {"groups", std::move(groups)},
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

report::record standing_record(const sweep_plan& plan, const standing& s) {
    const cell& c = plan.cells[s.cell];
    report::record r{{"recipe", c.name},
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
        r.emplace_back(std::string(pooled_rates[i].name), report::to_value(s.rates[i]));
    }
    return r;
}

report::record comparison_members(const sweep_plan& plan, const comparison& c) {
    report::list ranking, left_out;
    for (std::size_t place = 0; place < c.overall.cells.size(); ++place) {
        ranking.emplace_back(ranked(plan, c, place));
    }
    for (const left_out_cell& l : plan.left_out) {
        left_out.emplace_back(report::record{{"recipe", l.recipe}, {"reason", l.reason}});
    }
    return {{"baseline", plan.baseline.name},
            {"ranked_tensors", tally(c.overall.over.tensors.size())},
            {"not_everywhere", c.overall.over.not_everywhere},
            {"contests", c.overall.contests},
            {"ranking", std::move(ranking)},
            {"pareto", pareto_of(plan, c)},
            {"best_by_bits", classes_of(plan, c)},
            {"roles", roles_of(plan, c)},
            {"series", series_of(plan, c)},
            {"disagreement", disagreement_of(plan, c)},
            {"phase", phase_of(plan, c)},
            {"left_out", std::move(left_out)}};
}

}  // namespace mx::compare
