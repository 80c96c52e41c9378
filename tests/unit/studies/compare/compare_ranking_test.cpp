// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <list>
#include <string>
#include <vector>

#include "libmx/studies/compare/comparison.hpp"
#include "libmx/studies/compare/ranking.hpp"
#include "tests/catch.hpp"
#include "tests/unit/studies/compare/compare_made_up.hpp"

using namespace mx;
using namespace mx::compare;
using tests::result;

namespace {

const std::string floor_cell = "mxfp4";
const std::string even_cell = "mxfp4:scale=even";
const std::string rceil_cell = "mxfp4:scale=rceil";

sweep_plan three() { return plan_sweep({{floor_cell, even_cell, rceil_cell}, {}, ""}); }

comparison judge(const sweep_plan& plan, const std::vector<result>& results) {
    static std::list<analysis::analysis> kept;  // comparisons refer to them
    analysis::analysis& a = kept.emplace_back();
    for (const result& r : results) tests::add(a.results, r);
    for (const family& f : scale_families(plan)) a.scale_differences.emplace_back(f.cells.size());
    return evaluate(plan, a, false);
}

const standing& of(const sweep_plan& plan, const comparison& c, const std::string& name) {
    for (const standing& s : c.overall.cells) {
        if (plan.cells[s.cell].name == name) return s;
    }
    throw std::logic_error(name);
}

}  // namespace

TEST_CASE("the ranking is by the geometric mean of ratios to the baseline") {
    const sweep_plan plan = three();
    const comparison c = judge(plan, {{"a", floor_cell, 0.10},
                                      {"a", even_cell, 0.05},
                                      {"a", rceil_cell, 0.20},
                                      {"b", floor_cell, 0.01},
                                      {"b", even_cell, 0.04},
                                      {"b", rceil_cell, 0.005}});
    // Ratios: even 1/2 and 4, rceil 2 and 1/2.
    CHECK(of(plan, c, floor_cell).rmse_ratio->mean == 1.0);
    CHECK(of(plan, c, even_cell).rmse_ratio->mean == Approx(std::sqrt(2.0)));
    CHECK(of(plan, c, rceil_cell).rmse_ratio->mean == Approx(1.0));
    CHECK(of(plan, c, even_cell).wins == 1);
    CHECK(of(plan, c, rceil_cell).wins == 1);
    CHECK(of(plan, c, floor_cell).wins == 0);
    CHECK(c.overall.contests == 2);
    CHECK(plan.cells[c.overall.cells.back().cell].name == even_cell);
    // Over all elements together: sqrt of the mean square.
    const double nrmse = std::sqrt((0.01 + 0.0001) / 2);
    CHECK(of(plan, c, floor_cell).nrmse->mean == Approx(nrmse));
    CHECK(of(plan, c, floor_cell).sqnr_db->mean == Approx(-20 * std::log10(nrmse)));
    CHECK(of(plan, c, floor_cell).mean_sqnr_db->mean == Approx(30.0));
    CHECK_FALSE(of(plan, c, floor_cell).rmse_ratio->interval);
}

TEST_CASE("a tie is a win for all who share it, and the fewest bits come first") {
    const sweep_plan plan = three();
    const comparison c = judge(plan, {{"a", floor_cell, 0.10, 4.5},
                                      {"a", even_cell, 0.10, 4.25},
                                      {"a", rceil_cell, 0.20, 4.25}});
    CHECK(of(plan, c, floor_cell).wins == 1);
    CHECK(of(plan, c, even_cell).wins == 1);
    CHECK(of(plan, c, rceil_cell).wins == 0);
    CHECK(plan.cells[c.overall.cells[0].cell].name == even_cell);
    CHECK(c.best == std::vector<bool>{true, true, false});
}

TEST_CASE("errors closer than the sums are accurate are the same") {
    const sweep_plan plan = three();
    const comparison c = judge(plan, {{"a", floor_cell, 0.1 * (1 + 5e-7)},
                                      {"a", even_cell, 0.1},
                                      {"a", rceil_cell, 0.1 * (1 + 5e-6)}});
    CHECK(of(plan, c, floor_cell).wins == 1);
    CHECK(of(plan, c, even_cell).wins == 1);
    CHECK(of(plan, c, rceil_cell).wins == 0);
    CHECK(plan.cells[c.overall.cells[0].cell].name == even_cell);
    CHECK(c.best == std::vector<bool>{true, true, false});
    CHECK(c.front == std::vector<bool>{true, true, false});
}

TEST_CASE("tensors without an error are left out of ratios and counted") {
    const sweep_plan plan = three();
    const comparison c = judge(plan, {{"both", floor_cell, 0.0},
                                      {"both", even_cell, 0.0},
                                      {"both", rceil_cell, 0.0},
                                      {"one", floor_cell, 0.2},
                                      {"one", even_cell, 0.0},
                                      {"one", rceil_cell, 0.1},
                                      {"base", floor_cell, 0.0},
                                      {"base", even_cell, 0.3},
                                      {"base", rceil_cell, 0.0},
                                      {"none", floor_cell, 0.4},
                                      {"none", even_cell, 0.1},
                                      {"none", rceil_cell, 0.4},
                                      {"empty", floor_cell, std::nullopt, 0, "weight", {}, {}, 0},
                                      {"empty", even_cell, std::nullopt, 0, "weight", {}, {}, 0},
                                      {"empty", rceil_cell, std::nullopt, 0, "weight", {}, {}, 0}});
    const standing& even = of(plan, c, even_cell);
    CHECK(even.rmse_ratio->mean == Approx(0.25));
    CHECK(even.compared == 1);
    CHECK(even.only_exact == 1);
    CHECK(even.only_baseline_exact == 1);
    CHECK(even.wins == 2);
    CHECK(even.tensors == 4);
    // Not over "one" too, where even has no ratio: 0.1 / 0.2 there would give it an undeserved
    // lead.
    CHECK(of(plan, c, rceil_cell).rmse_ratio->mean == Approx(1.0));
    CHECK(of(plan, c, rceil_cell).compared == 1);
    CHECK(c.overall.contests == 3);
    CHECK(of(plan, c, floor_cell).bits_per_element == 4.25);
}

TEST_CASE("a cell without any error comes first, one without any figure last") {
    const sweep_plan plan = three();
    const comparison c = judge(plan, {{"a", floor_cell, 0.1}, {"a", rceil_cell, 0.0}});
    CHECK(plan.cells[c.overall.cells[0].cell].name == rceil_cell);
    CHECK(c.overall.cells[0].exact);
    CHECK_FALSE(c.overall.cells[0].rmse_ratio);
    CHECK(plan.cells[c.overall.cells[2].cell].name == even_cell);
    CHECK(c.overall.cells[2].tensors == 0);
    CHECK(c.best == std::vector<bool>{true, false, false});
    CHECK(c.front == std::vector<bool>{true, false, false});
}

TEST_CASE("all cells are ranked on the same tensors") {
    const sweep_plan plan = three();
    // even wins the one tensor that all three were measured on; elsewhere nobody meets it.
    const comparison c = judge(plan, {{"all", floor_cell, 0.10},
                                      {"all", even_cell, 0.05},
                                      {"all", rceil_cell, 0.20},
                                      {"some", floor_cell, 0.50, 6.25},
                                      {"some", rceil_cell, 0.01, 6.25},
                                      {"empty", floor_cell, std::nullopt, 0, "weight", {}, {}, 0},
                                      {"empty", rceil_cell, std::nullopt, 0, "weight", {}, {}, 0}});
    CHECK(c.overall.over.tensors == std::vector<std::size_t>{0});
    CHECK(c.overall.over.not_everywhere == 1);
    CHECK(plan.cells[c.overall.cells[0].cell].name == even_cell);
    CHECK(of(plan, c, rceil_cell).rmse_ratio->mean == Approx(2.0));
    CHECK(of(plan, c, rceil_cell).wins == 0);
    CHECK(of(plan, c, rceil_cell).bits_per_element == 4.25);
    CHECK(of(plan, c, rceil_cell).sqnr_db->mean == Approx(-20 * std::log10(0.2)));
    CHECK(c.overall.contests == 1);
}

TEST_CASE("a cell that no tensor has a figure under does not narrow the ranking") {
    const sweep_plan plan = three();
    const comparison c = judge(plan, {{"a", floor_cell, 0.10},
                                      {"a", even_cell, std::nullopt},
                                      {"a", rceil_cell, 0.20},
                                      {"b", floor_cell, 0.10},
                                      {"b", rceil_cell, 0.20}});
    CHECK(c.overall.over.tensors.size() == 2);
    CHECK(c.overall.over.not_everywhere == 0);
    CHECK(of(plan, c, rceil_cell).rmse_ratio->mean == Approx(2.0));
    CHECK(of(plan, c, even_cell).tensors == 0);
    const report::record r = standing_record(plan, of(plan, c, even_cell));
    CHECK(*report::find(r, "bits_per_element") == report::value());
}

TEST_CASE("tensors of which cells leave out different elements are told") {
    const sweep_plan plan = three();
    const comparison c = judge(plan, {{"a", floor_cell, 0.10, 4.25, "weight", {}, {}, 64},
                                      {"a", even_cell, 0.05, 4.25, "weight", {}, {}, 32},
                                      {"a", rceil_cell, 0.20, 4.25, "weight", {}, {}, 64}});
    CHECK(c.overall.over.uneven == 1);
    CHECK(c.overall.over.tensors.size() == 1);
}

TEST_CASE("the quantiles of Student's t are those of the tables") {
    CHECK(mx::base::student_t95(1) == Approx(12.706204736174698).epsilon(1e-12));
    CHECK(mx::base::student_t95(2) == Approx(4.302652729749462).epsilon(1e-12));
    CHECK(mx::base::student_t95(3) == Approx(3.182446305284264).epsilon(1e-12));
    CHECK(mx::base::student_t95(4) == Approx(2.776445105198054).epsilon(1e-12));
    CHECK(mx::base::student_t95(9) == Approx(2.2621571627982).epsilon(1e-12));
    CHECK(mx::base::student_t95(30) == Approx(2.042272456301238).epsilon(1e-12));
    CHECK(mx::base::student_t95(999) == Approx(1.962341).epsilon(1e-6));
}

TEST_CASE("figures of a random cell are means over its seeds with an interval") {
    const std::string random = "mxfp4:round=stochastic";
    const sweep_plan plan = plan_sweep({{floor_cell, random}, {}, "", 3});
    const comparison c = judge(plan, {{"a", floor_cell, 0.1},
                                      {"a", random, 0.2},
                                      {"a", random + ",seed=1", 0.3},
                                      {"a", random + ",seed=2", 0.4}});
    const standing& s = of(plan, c, random);
    CHECK(s.rmse_ratio->mean == Approx(3.0));
    // Ratios 2, 3, 4: standard deviation 1 over three seeds.
    CHECK(*s.rmse_ratio->interval == Approx(4.302652729749462 / std::sqrt(3.0)));
    CHECK(rmse_of(c.table, 0, plan.cells[1]) == Approx(0.3));
    CHECK(s.wins == 0);
    // The lead of 2 is within the interval of 2.48.
    CHECK(within_interval(of(plan, c, floor_cell), s));
    CHECK_FALSE(within_interval(of(plan, c, floor_cell), of(plan, c, floor_cell)));
    const report::record r = standing_record(plan, s);
    CHECK(std::get<std::int64_t>(*report::find(r, "seeds")) == 3);
}

TEST_CASE("rates are pooled by what they are shares of") {
    const sweep_plan plan = plan_sweep({{floor_cell}, {}, ""});
    const comparison c = judge(plan, {{"a", floor_cell, 0.1, 4.25, "norm", {}, {}, 32, 0.5},
                                      {"b", floor_cell, 0.1, 4.5, "norm", {}, {}, 96, 0.1}});
    const standing& s = of(plan, c, floor_cell);
    CHECK(*s.rates[rate_index("clamp_rate")] == Approx(0.2));
    CHECK(s.bits_per_element == Approx(4.4375));
    CHECK_FALSE(s.rates[rate_index("underflow_rate")]);
}

TEST_CASE("the Pareto front keeps ties and drops what is dominated") {
    const auto front = [](std::vector<trade> points) { return pareto_front(points); };
    using flags = std::vector<bool>;
    CHECK(front({{4, 18.0}, {6, 30.0}, {8, 29.0}, {8, 31.0}}) == flags{true, true, false, true});
    CHECK(front({{4, 18.0}, {4, 18.0}, {4, 17.0}}) == flags{true, true, false});
    // As good with more bits, and better with as many: both dominated.
    CHECK(front({{4, 18.0}, {5, 18.0}, {4, 19.0}}) == flags{false, false, true});
    CHECK(front({{8, no_error}, {9, no_error}, {10, 60.0}, {4, {}}}) ==
          flags{true, false, false, false});
    CHECK(front({}).empty());
}

TEST_CASE("roles and classes of bits have bests of their own") {
    const sweep_plan plan = plan_sweep({{"mxfp8", even_cell, floor_cell}, {}, ""});
    const comparison c = judge(plan, {{"w", "mxfp8", 0.1, 8.25},
                                      {"w", even_cell, 0.3, 4.25},
                                      {"w", floor_cell, 0.2, 4.25},
                                      {"n", "mxfp8", 0.2, 8.25, "norm"},
                                      {"n", even_cell, 0.1, 4.25, "norm"},
                                      {"n", floor_cell, 0.4, 4.25, "norm"}});
    REQUIRE(c.roles.size() == 2);
    const auto best = [&](const role_ranking& r) {
        return plan.cells[r.ranks.cells.front().cell].name;
    };
    CHECK(c.roles[0].role == "norm");
    CHECK(best(c.roles[0]) == even_cell);
    CHECK(c.roles[0].ranks.cells.front().rmse_ratio->mean == Approx(0.5));
    CHECK(best(c.roles[1]) == "mxfp8");
    REQUIRE(c.classes.size() == 2);
    CHECK(c.classes[0].bits == 4);
    CHECK(c.classes[0].cells == 2);
    // even: sqrt(3 * 1/2), floor: sqrt(2 * 2)
    CHECK(plan.cells[c.overall.cells[c.classes[0].best].cell].name == even_cell);
    CHECK(plan.cells[c.overall.cells[c.classes[0].second].cell].name == floor_cell);
    CHECK(c.classes[1].best == c.classes[1].second);
}

TEST_CASE("series hold the layers in order") {
    const sweep_plan plan = plan_sweep({{floor_cell}, {}, ""});
    const comparison c = judge(plan, {{"l.10.w", floor_cell, 0.10, 4.25, "weight", 10},
                                      {"l.2.w", floor_cell, 0.02, 4.25, "weight", 2, {}, 64, 0.25},
                                      {"l.9.w", floor_cell, std::nullopt, 4.25, "weight", 9},
                                      {"l.2.b", floor_cell, 0.2, 4.25, "bias", 2},
                                      {"head", floor_cell, 0.2}});
    REQUIRE(c.series.size() == 1);
    CHECK(c.series[0].name == "l.*.w");
    CHECK(c.series[0].tensors == std::vector<std::size_t>{1, 2, 0});
    const report::record_list series = series_records(std::make_shared<const sweep_plan>(plan),
                                                      std::make_shared<const comparison>(c));
    REQUIRE(series.size() == 1);
    const report::record one = *series.begin();
    CHECK(*report::find(one, "layers") ==
          report::value(report::list{std::int64_t{2}, std::int64_t{9}, std::int64_t{10}}));
    CHECK(*report::find(one, "rmse") == report::value(report::list{0.02, std::monostate{}, 0.10}));
    const auto& clamped = std::get<report::list>(*report::find(one, "clamp_rate"));
    CHECK(clamped[0] == report::value(0.25));
}
