// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "libmx/analysis/scale_pairs.hpp"
#include "libmx/report/members.hpp"

namespace mx::compare {
namespace {

using report::record;
using report::to_list;
using report::to_value;

report::value mean_of(const std::optional<base::estimate>& e) {
    return e ? e->mean : report::value();
}
report::value interval_of(const std::optional<base::estimate>& e) {
    return e ? to_value(e->interval) : report::value();
}

struct shown_standing {
    const sweep_plan& plan;
    const standing& s;
    const cell& c = plan.cells[s.cell];
};
// Before the pooled rates.
constexpr std::array standing_members = std::to_array<report::declared<shown_standing>>({
    {"recipe", "string", "the recipe, spelt canonically", [](auto& x) { return x.c.name; }},
    {"seeds", "count?", "seeds that stochastic recipes were run with",
     [](auto& x) {
         return is_random(x.c.recipe) ? report::tally(x.c.runs.size()) : report::value();
     }},
    {"tensors", "count", "tensors that it was measured on", [](auto& x) { return x.s.tensors; }},
    {"rmse_ratio", "amount?", "geometric mean over tensors of R-MSE over that of the baseline",
     [](auto& x) { return mean_of(x.s.rmse_ratio); }},
    {"rmse_ratio_interval", "amount?", "half width of its 95 % interval over seeds",
     [](auto& x) { return interval_of(x.s.rmse_ratio); }},
    {"compared", "count", "tensors that the ratio is over", [](auto& x) { return x.s.compared; }},
    {"only_exact", "count", "tensors that it holds exactly and the baseline does not",
     [](auto& x) { return x.s.only_exact; }},
    {"only_baseline_exact", "count", "tensors that the baseline holds exactly and it does not",
     [](auto& x) { return x.s.only_baseline_exact; }},
    {"exact", "boolean", "it holds every tensor exactly", [](auto& x) { return x.s.exact; }},
    {"wins", "count", "tensors of which no recipe has less R-MSE",
     [](auto& x) { return x.s.wins; }},
    {"nrmse", "@members#nrmse", "over all tensors", [](auto& x) { return mean_of(x.s.nrmse); }},
    {"sqnr_db", "@members#sqnr_db", "over all tensors (dB)",
     [](auto& x) { return mean_of(x.s.sqnr_db); }},
    {"sqnr_db_interval", "amount?", "half width of its 95 % interval over seeds (dB)",
     [](auto& x) { return interval_of(x.s.sqnr_db); }},
    {"mean_sqnr_db", "number?", "mean over tensors (dB)",
     [](auto& x) { return mean_of(x.s.mean_sqnr_db); }},
    {"bits_per_element", "@members#bits_per_element", "",
     [](auto& x) { return x.s.tensors == 0 ? report::value() : x.s.bits_per_element; }},
});
void declare_standing(report::member_list& to) {
    to.add(standing_members);
    for (const pooled_rate& r : pooled_rates) {
        to.add({r.name, to.keep(fmt::format("@members#{}", r.name)), ""});
    }
}

struct ranked_place {
    const comparison& c;
    std::size_t place;
};
constexpr std::array place_members = std::to_array<report::declared<ranked_place>>({
    {"rank", "ordinal", "from 1", [](auto& x) { return x.place + 1; }},
    {"best", "boolean", "nothing stands before it",
     [](auto& x) { return bool{x.c.best[x.place]}; }},
    {"pareto", "boolean", "on the front of bits and SQNR",
     [](auto& x) { return bool{x.c.front[x.place]}; }},
});

constexpr std::array front_members = std::to_array<report::declared<shown_standing>>({
    {"recipe", "string", "", [](auto& x) { return x.c.name; }},
    {"bits_per_element", "@members#bits_per_element", "",
     [](auto& x) { return x.s.bits_per_element; }},
    {"sqnr_db", "@members#sqnr_db", "", [](auto& x) { return mean_of(x.s.sqnr_db); }},
});

struct shown_comparison {
    const sweep_plan& plan;
    const comparison& c;
};
report::list front_of(const shown_comparison& x) {
    report::list front;
    for (std::size_t place = 0; place < x.c.front.size(); ++place) {
        if (!x.c.front[place]) continue;
        front.emplace_back(report::written(front_members, {x.plan, x.c.overall.cells[place]}));
    }
    return front;
}

struct shown_width {
    const sweep_plan& plan;
    const bits_class& k;
    const standing& best;
};
constexpr std::array width_members = std::to_array<report::declared<shown_width>>({
    {"bits", "count", "whole bits per element", [](auto& x) { return x.k.bits; }},
    {"cells", "count", "recipes of that width", [](auto& x) { return x.k.cells; }},
    {"best", "string", "", [](auto& x) { return x.plan.cells[x.best.cell].name; }},
    {"bits_per_element", "@members#bits_per_element", "",
     [](auto& x) { return x.best.bits_per_element; }},
    {"rmse_ratio", "amount?", "", [](auto& x) { return mean_of(x.best.rmse_ratio); }},
    {"sqnr_db", "@members#sqnr_db", "", [](auto& x) { return mean_of(x.best.sqnr_db); }},
});

struct shown_role {
    const sweep_plan& plan;
    const role_ranking& of;
};
constexpr std::array role_members = std::to_array<report::declared<shown_role>>({
    {"role", "@members#role", "", [](auto& x) { return x.of.role; }},
    {"tensors", "count", "", [](auto& x) { return x.of.tensors.size(); }},
    {"ranked_tensors", "count", "", [](auto& x) { return x.of.ranks.over.tensors.size(); }},
    {"contests", "count", "", [](auto& x) { return x.of.ranks.contests; }},
    {"best", "string", "", [](auto& x) { return x.plan.cells[x.of.ranks.cells.front().cell].name; }},
    {"ranking", "[#standing]", "",
     [](auto& x) {
         return to_list(x.of.ranks.cells, [&](auto& s) { return standing_record(x.plan, s); });
     }},
});

// A tensor under a recipe, among those with the largest errors.
struct worst_result {
    const comparison& c;
    const cell& of;
    std::size_t tensor;
    analysis::result r = c.table.of(tensor, of.runs.front());
};
constexpr std::array worst_members = std::to_array<report::declared<worst_result>>({
    {"file", "string", "", [](auto& x) { return x.c.table.tensors[x.tensor].of->file; }},
    {"tensor", "string", "", [](auto& x) { return x.c.table.tensors[x.tensor].of->tensor; }},
    {"recipe", "string", "", [](auto& x) { return x.of.name; }},
    {"rmse", "@members#rmse", "", [](auto& x) { return x.r.rmse; }},
    {"sqnr_db", "@members#sqnr_db", "", [](auto& x) { return x.r.sqnr_db; }},
    {"clamp_rate", "@members#clamp_rate", "", [](auto& x) { return x.r.clamp_rate; }},
    {"underflow_rate", "@members#underflow_rate", "", [](auto& x) { return x.r.underflow_rate; }},
});
constexpr std::size_t listed_tensors = 10;

// Empty for a single tensor.
report::list worst_of(const shown_comparison& x) {
    report::list all;
    const comparison& c = x.c;
    if (c.tensors.size() < 2 || c.overall.cells.empty()) return all;
    const cell& first = x.plan.cells[c.overall.cells.front().cell];
    std::vector<std::pair<double, std::size_t>> losses;
    for (const std::size_t t : c.tensors) {
        const double nrmse = c.table.of(t, first.runs.front()).nrmse;
        if (nrmse > 0) losses.emplace_back(nrmse, t);
    }
    std::ranges::stable_sort(losses, std::greater{}, [](const auto& l) { return l.first; });
    if (losses.size() > listed_tensors) losses.resize(listed_tensors);
    for (const auto& [loss, t] : losses) {
        const std::optional<std::size_t> best = best_on(x.plan, c.table, t);
        const auto here = rmse_of(c.table, t, first);
        const auto least = best ? rmse_of(c.table, t, x.plan.cells[*best]) : here;
        all.emplace_back(report::written(worst_members, {c, first, t}));
        if (!here || !least || *least >= *here * (1 - same_rmse)) continue;
        all.emplace_back(report::written(worst_members, {c, x.plan.cells[*best], t}));
    }
    return all;
}

struct crest_factors {
    std::string transform;
    double logs = 0, count = 0, largest = 0;
    std::string_view tensor = {};
};
constexpr std::array crest_members = std::to_array<report::declared<crest_factors>>({
    {"transform", "string", "with its size and seed; none", [](auto& f) { return f.transform; }},
    {"mean", "amount", "geometric mean over tensors",
     [](auto& f) { return std::exp(f.logs / f.count); }},
    {"largest", "amount", "", [](auto& f) { return f.largest; }},
    {"tensor", "string", "that has the largest", [](auto& f) { return f.tensor; }},
});

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

// Empty without transforms.
report::list crests_of(const shown_comparison& x) {
    std::vector<std::pair<std::string, std::size_t>> transforms;  // and a run with it
    for (const cell& one : x.plan.cells) {
        const std::string name = transform_of(one.recipe);
        const auto known =
            std::ranges::find_if(transforms, [&](const auto& t) { return t.first == name; });
        if (known == transforms.end()) transforms.emplace_back(name, one.runs.front());
    }
    report::list all;
    if (std::ranges::all_of(x.plan.cells, [](const cell& one) {
            return one.recipe.rotate == transform::rotation{};
        })) {
        return all;
    }
    for (const auto& [name, run] : transforms) {
        crest_factors f{name};
        for (const std::size_t t : x.c.tensors) {
            const double crest = x.c.table.of(t, run).crest_factor;
            if (std::isnan(crest)) continue;
            f.logs += std::log(crest);
            ++f.count;
            if (crest <= f.largest) continue;
            f.largest = crest;
            f.tensor = x.c.table.tensors[t].of->tensor;
        }
        if (f.count > 0) all.emplace_back(report::written(crest_members, f));
    }
    return all;
}

struct shown_series {
    const comparison& c;
    const layer_series& s;
    const cell& of;
};
// Before the series_figures.
constexpr std::array series_members = std::to_array<report::declared<shown_series>>({
    {"file", "string", "", [](auto& x) { return x.s.file; }},
    {"series", "string", "name of the tensors with * in place of the layer",
     [](auto& x) { return x.s.name; }},
    {"role", "@members#role", "", [](auto& x) { return x.s.role; }},
    {"recipe", "string", "", [](auto& x) { return x.of.name; }},
    {"layers", "[count]", "numbers of the layers",
     [](auto& x) {
         return to_list(x.s.tensors, [&](auto t) { return *x.c.table.tensors[t].of->layer; });
     }},
});

record series_record(const shown_series& x) {
    record r = report::written(series_members, x);
    for (const series_figure& f : series_figures) {
        r.emplace_back(std::string(f.name), to_list(x.s.tensors, [&](std::size_t t) {
                           return to_value(figure_of(x.c.table, t, x.of, f.figure));
                       }));
    }
    return r;
}

struct shown_family {
    const shown_comparison& of;
    std::size_t g;
    const family& cells = of.c.scale_groups[g];
};
constexpr std::array family_members = std::to_array<report::declared<shown_family>>({
    {"group", "string", "", [](auto& x) { return x.cells.name; }},
    {"recipes", "[string]", "",
     [](auto& x) {
         return to_list(x.cells.cells, [&](std::size_t a) { return x.of.plan.cells[a].name; });
     }},
    {"blocks", "count", "", [](auto& x) { return x.of.c.scale_differences[x.g].blocks; }},
    {"scale_difference_rate", "[[share?]]", "by pair: share of blocks with different scale bytes",
     [](auto& x) {
         report::list matrix;
         for (std::size_t a = 0; a < x.cells.cells.size(); ++a) {
             report::list row;
             for (std::size_t b = 0; b < x.cells.cells.size(); ++b) {
                 row.push_back(scale_difference(x.of.c, x.g, a, b));
             }
             matrix.emplace_back(std::move(row));
         }
         return matrix;
     }},
});

// A contest across the phases.
struct shown_contest {
    const sweep_plan& plan;
    const phase_contest& k;
};
constexpr std::array contest_members = std::to_array<report::declared<shown_contest>>({
    {"best", "string", "", [](auto& x) { return x.plan.cells[x.k.best].name; }},
    {"second", "string", "", [](auto& x) { return x.plan.cells[x.k.second].name; }},
    {"win", "amount?", "by how much the best wins at factor 1", [](auto& x) { return x.k.win(); }},
    {"swing", "amount?", "by how much the ratio moves over the factors",
     [](auto& x) { return x.k.swing(); }},
    {"within_swing", "boolean", "the win is smaller than the swing",
     [](auto& x) { return x.k.within_swing(); }},
    {"reversed", "count", "factors at which the second wins", [](auto& x) { return x.k.reversed; }},
    {"least_ratio", "amount?", "", [](auto& x) { return x.k.least; }},
    {"greatest_ratio", "amount?", "", [](auto& x) { return x.k.greatest; }},
    {"ratio", "[amount?]", "R-MSE of the second over that of the best, by factor",
     [](auto& x) { return to_list(x.k.ratio); }},
});
report::value contest_of(const sweep_plan& plan, const std::optional<phase_contest>& k) {
    return k ? report::value(report::written(contest_members, {plan, *k})) : report::value();
}

struct shown_errors {
    const cell& of;
    const std::vector<double>& errors;
};
constexpr std::array errors_members = std::to_array<report::declared<shown_errors>>({
    {"recipe", "string", "", [](auto& x) { return x.of.name; }},
    {"nrmse", "[amount?]", "by factor", [](auto& x) { return to_list(x.errors); }},
});
report::list errors_of(const sweep_plan& plan, const std::vector<std::size_t>& cells,
                       const std::vector<std::vector<double>>& errors) {
    report::list all;
    for (std::size_t i = 0; i < errors.size(); ++i) {
        all.emplace_back(report::written(errors_members, {plan.cells[cells[i]], errors[i]}));
    }
    return all;
}

struct shown_group {
    const sweep_plan& plan;
    const phase_group& g;
};
constexpr std::array group_members = std::to_array<report::declared<shown_group>>({
    {"group", "string?", "recipes that differ in the scale rule only; null: all",
     [](auto& x) { return x.g.name.empty() ? report::value() : report::value(x.g.name); }},
    {"contest", "#contest?", "null: fewer than two recipes have an error in every phase",
     [](auto& x) { return contest_of(x.plan, x.g.contest); }},
    {"cells", "[#cell]", "", [](auto& x) { return errors_of(x.plan, x.g.cells, x.g.errors); }},
});

struct phased_tensor {
    std::string_view file, tensor;
    report::list contests, cells;
};
constexpr std::array phased_members = std::to_array<report::declared<phased_tensor>>({
    {"file", "string", "", [](auto& t) { return t.file; }},
    {"tensor", "string", "", [](auto& t) { return t.tensor; }},
    {"contests", "[#contest?]", "by group", [](auto& t) { return t.contests; }},
    {"cells", "[#cell]", "", [](auto& t) { return t.cells; }},
});
report::list phased_tensors(const shown_comparison& x) {
    return to_list(x.c.tensors, [&](std::size_t t) {
        const analysis::tensor_identity& of = *x.c.table.tensors[t].of;
        phased_tensor shown{of.file, of.tensor, {}, {}};
        for (const phase_group& g : x.c.phases) {
            const auto errors = phase_errors(x.c.table, x.plan, g.cells, std::span(&t, 1));
            shown.contests.push_back(contest_of(x.plan, judge_phases(g.cells, errors)));
            if (g.name.empty()) shown.cells = errors_of(x.plan, g.cells, errors);
        }
        return report::written(phased_members, shown);
    });
}
constexpr std::array phase_members = std::to_array<report::declared<shown_comparison>>({
    {"factors", "[amount]", "the factors", [](auto&) { return to_list(phase_factors()); }},
    {"groups", "[#phase_group]", "",
     [](auto& x) {
         return to_list(x.c.phases, [&](auto& g) {
             return report::written(group_members, {x.plan, g});
         });
     }},
    {"tensors", "[#phase_tensor]", "", [](auto& x) { return phased_tensors(x); }},
});

constexpr std::array left_out_members = std::to_array<report::declared<left_out_cell>>({
    {"recipe", "string", "", [](auto& l) { return l.recipe; }},
    {"reason", "string", "", [](auto& l) { return l.reason; }},
});

constexpr std::array tail_members = std::to_array<report::declared<shown_comparison>>({
    {"baseline", "string", "recipe that ratios are over", [](auto& x) { return x.plan.baseline.name; }},
    {"ranked_tensors", "count",
     "operands of products (of the tensors chosen with --role or --tensor: all; likewise if there "
     "is none) that every recipe was measured on",
     [](auto& x) { return x.c.overall.over.tensors.size(); }},
    {"not_everywhere", "count", "of these, tensors that some recipe was not measured on",
     [](auto& x) { return x.c.overall.over.not_everywhere; }},
    {"contests", "count", "ranked tensors that not every recipe holds alike",
     [](auto& x) { return x.c.overall.contests; }},
    {"ranking", "[#ranked]", "recipes, the best first",
     [](auto& x) {
         report::list ranking;
         for (std::size_t place = 0; place < x.c.overall.cells.size(); ++place) {
             record r = report::written(place_members, {x.c, place});
             record s = standing_record(x.plan, x.c.overall.cells[place]);
             r.insert(r.end(), s.begin(), s.end());
             ranking.emplace_back(std::move(r));
         }
         return ranking;
     }},
    {"pareto", "[#front]", "the front of bits and SQNR, fewest bits first",
     [](auto& x) { return front_of(x); }},
    {"best_by_bits", "[#width]", "the best recipe of each width",
     [](auto& x) {
         return to_list(x.c.classes, [&](const bits_class& k) {
             return report::written(width_members, {x.plan, k, x.c.overall.cells[k.best]});
         });
     }},
    {"roles", "[#role]", "the ranking on the tensors of one role",
     [](auto& x) {
         return to_list(x.c.roles,
                        [&](auto& r) { return report::written(role_members, {x.plan, r}); });
     }},
    {"series", "[#series]",
     "a kind of tensor through the layers, under a recipe; the baseline last if it is not ranked",
     [](auto&) { return report::list(); }},
    {"disagreement", "[#family]", "recipes that differ in the scale rule only",
     [](auto& x) {
         report::list all;
         for (std::size_t g = 0; g < x.c.scale_groups.size(); ++g) {
             all.emplace_back(report::written(family_members, {x, g}));
         }
         return all;
     }},
    {"phase", "#phase?",
     "with --phase-sweep: the contests when all values are multiplied by a factor",
     [](auto& x) {
         return x.c.phases.empty() ? report::value() : report::written(phase_members, x);
     }},
    {"worst_tensors", "[#worst]",
     "ranked tensors with the largest relative error under the first recipe, each followed by its "
     "recipe of least error if that is another; empty for a single tensor",
     [](auto& x) { return worst_of(x); }},
    {"crest_factors", "[#crest]",
     "max |x| / RMS of what is quantized, by transform; empty without transforms",
     [](auto& x) { return crests_of(x); }},
    {"left_out", "[#left_out]", "recipes that do not exist",
     [](auto& x) { return report::listed(left_out_members, x.plan.left_out); }},
});

}  // namespace

report::value scale_difference(const comparison& c, std::size_t group, std::size_t a,
                               std::size_t b) {
    const analysis::scale_pairs& counts = c.scale_differences[group];
    const std::size_t pair =
        analysis::pair_index(std::min(a, b), std::max(a, b), c.scale_groups[group].cells.size());
    return report::share(a == b ? 0 : counts.differ[pair], counts.blocks);
}

record standing_record(const sweep_plan& plan, const standing& s) {
    record r = report::written(standing_members, {plan, s});
    for (std::size_t i = 0; i < pooled_rates.size(); ++i) {
        r.emplace_back(std::string(pooled_rates[i].name), to_value(s.rates[i]));
    }
    return r;
}

report::record_list series_records(std::shared_ptr<const sweep_plan> plan,
                                   std::shared_ptr<const comparison> c) {
    const std::size_t each = plan->cells.size() + (plan->baseline_is_cell ? 0 : 1);
    const std::size_t count = c->series.size() * each;
    return {count, [plan = std::move(plan), c = std::move(c), each](std::size_t i) {
                const std::size_t at = i % each;
                const cell& of = at < plan->cells.size() ? plan->cells[at] : plan->baseline;
                return series_record({*c, c->series[i / each], of});
            }};
}

record comparison_members(const sweep_plan& plan, const comparison& c) {
    return report::written(tail_members, {plan, c});
}

void declare_comparison(report::document_schema& to) {
    report::member_list standing, ranked, series;
    declare_standing(standing);
    declare_standing(ranked.add(place_members));
    series.add(series_members);
    for (const series_figure& f : series_figures) series.add({f.name, f.type, "by layer"});
    to.members_together(tail_members)
        .define("standing", standing)
        .define("ranked", ranked)
        .define("front", front_members)
        .define("width", width_members)
        .define("role", role_members)
        .define("series", series)
        .define("family", family_members)
        .define("phase", phase_members)
        .define("phase_group", group_members)
        .define("phase_tensor", phased_members)
        .define("contest", contest_members)
        .define("cell", errors_members)
        .define("worst", worst_members)
        .define("crest", crest_members)
        .define("left_out", left_out_members);
}

}  // namespace mx::compare
