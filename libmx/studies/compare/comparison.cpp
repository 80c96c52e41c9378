// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libmx/engine/roles.hpp"
#include "libmx/studies/compare/ranking.hpp"

namespace mx::compare {
namespace {

std::vector<bool> front_of(const ranking& r) {
    std::vector<trade> trades;
    for (const standing& s : r.cells) {
        trade t{s.bits_per_element, {}};
        if (s.exact) {
            t.sqnr_db = no_error;
        } else if (s.sqnr_db) {
            t.sqnr_db = s.sqnr_db->mean;
        }
        trades.push_back(t);
    }
    return pareto_front(trades);
}

std::vector<bits_class> classes_of(const ranking& r) {
    std::vector<bits_class> classes;
    for (std::size_t place = 0; place < r.cells.size(); ++place) {
        const standing& s = r.cells[place];
        if (s.tensors == 0) continue;
        const int bits = static_cast<int>(std::floor(s.bits_per_element));
        const auto at = std::ranges::find(classes, bits, &bits_class::bits);
        if (at == classes.end()) {
            classes.push_back({bits, place, place, 1});
        } else {
            if (at->second == at->best) at->second = place;
            ++at->cells;
        }
    }
    std::ranges::sort(classes, {}, &bits_class::bits);
    return classes;
}

// Those of ranked tensors first.
std::vector<role_ranking> roles_of(const analysis::results_table& b, const sweep_plan& plan,
                                   const std::vector<std::size_t>& ranked) {
    std::vector<role_ranking> rankings;
    for (const engine::role_row& role : engine::roles()) {
        role_ranking r{std::string(role.name), {}, {}};
        for (std::size_t t = 0; t < b.tensors.size(); ++t) {
            if (b.tensors[t].of->role == role.name) r.tensors.push_back(t);
        }
        if (r.tensors.empty()) continue;
        r.ranks = rank(b, plan, r.tensors);
        rankings.push_back(std::move(r));
    }
    std::stable_partition(rankings.begin(), rankings.end(), [&](const role_ranking& r) {
        return std::ranges::any_of(
            r.tensors, [&](std::size_t t) { return std::ranges::binary_search(ranked, t); });
    });
    return rankings;
}

std::vector<phase_group> phases_of(const comparison& c, const sweep_plan& plan) {
    std::vector<phase_group> groups(1);
    groups.front().cells.resize(plan.cells.size());
    std::iota(groups.front().cells.begin(), groups.front().cells.end(), std::size_t{0});
    for (const family& f : rule_families(plan)) {
        if (f.cells.size() < plan.cells.size()) groups.push_back({f.name, f.cells, {}, {}});
    }
    for (phase_group& g : groups) {
        std::erase_if(g.cells,
                      [&](std::size_t i) { return unmeasured(c.table, plan.cells[i], c.tensors); });
        g.errors = phase_errors(c.table, plan, g.cells, c.tensors);
        g.contest = judge_phases(g.cells, g.errors);
    }
    return groups;
}

}  // namespace

analysis::analysis_request request_of(const sweep_plan& plan, bool phase_sweep) {
    analysis::analysis_request request;
    request.recipes = plan.recipes;
    request.decompose = true;
    if (phase_sweep) request.factors = phase_factors();
    for (const family& f : scale_families(plan)) {
        std::vector<std::size_t> group;
        for (const std::size_t c : f.cells) group.push_back(plan.cells[c].runs.front());
        request.scale_groups.push_back(std::move(group));
    }
    return request;
}

comparison evaluate(const sweep_plan& plan, const analysis::analysis& a, bool phase_sweep,
                    const ranked_tensors& ranked) {
    comparison c;
    c.table = analysis::results_table(plan.recipes, phase_sweep ? phase_count : 1);
    c.table.add(a.results);
    c.tensors = all_tensors(c.table);
    if (ranked) {
        std::erase_if(c.tensors, [&](std::size_t t) { return !ranked(*c.table.tensors[t].of); });
        if (c.tensors.empty()) c.tensors = all_tensors(c.table);
    }
    c.overall = rank(c.table, plan, c.tensors);
    for (const standing& s : c.overall.cells) {
        c.best.push_back((s.exact || s.rmse_ratio) && !stands_before(c.overall.cells.front(), s));
    }
    c.front = front_of(c.overall);
    c.classes = classes_of(c.overall);
    c.roles = roles_of(c.table, plan, c.tensors);
    c.series = find_series(c.table);
    c.scale_groups = scale_families(plan);
    c.scale_differences = a.scale_differences;
    if (phase_sweep) c.phases = phases_of(c, plan);
    return c;
}

bool within_interval(const standing& a, const standing& b) {
    if (!a.rmse_ratio || !b.rmse_ratio) return false;
    const double open =
        std::hypot(a.rmse_ratio->interval.value_or(0), b.rmse_ratio->interval.value_or(0));
    return open > 0 && std::abs(a.rmse_ratio->mean - b.rmse_ratio->mean) < open;
}

}  // namespace mx::compare
