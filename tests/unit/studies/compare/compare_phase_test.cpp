// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <list>
#include <random>
#include <string>
#include <vector>

#include "libmx/studies/compare/comparison.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"
#include "tests/unit/studies/compare/compare_made_up.hpp"

using namespace mx;
using namespace mx::compare;

namespace {

const std::vector<std::size_t> pair{0, 1};

}  // namespace

TEST_CASE("factors run through one binade") {
    const auto factors = phase_factors();
    REQUIRE(factors.size() == 16);
    CHECK(factors[0] == 1.0f);
    CHECK(factors[8] == 1.41421356f);
    CHECK(factors[15] == 1.91520656f);
}

TEST_CASE("a win that is smaller than the swing is called so") {
    // Second over best: 1.02, 1.10, 0.98, 0.95.
    const auto c = judge_phases(pair, {{0.102, 0.11, 0.098, 0.095}, {0.1, 0.1, 0.1, 0.1}});
    REQUIRE(c);
    CHECK(c->best == 1);
    CHECK(c->second == 0);
    CHECK(c->win() == Approx(0.02));
    CHECK(c->least == Approx(0.95));
    CHECK(c->greatest == Approx(1.10));
    CHECK(c->swing() == Approx(1.10 / 0.95 - 1));
    CHECK(c->reversed == 2);
    CHECK(c->within_swing());
    CHECK(
        phase_sentence(*c, "even", "floor") ==
        "even beats floor by 2.0 %, but the ratio moves by 16 % with the position of sigma in its "
        "binade; the order reverses in 2 of 4 phases");
}

TEST_CASE("a win beyond the swing stands") {
    const auto c = judge_phases(pair, {{0.1, 0.1}, {0.2, 0.21}});
    REQUIRE(c);
    CHECK(c->best == 0);
    CHECK(c->reversed == 0);
    CHECK_FALSE(c->within_swing());
    CHECK(phase_sentence(*c, "a", "b") ==
          "a beats b by 100 %, and the ratio moves by 5.0 % with the position of sigma in its "
          "binade; the order holds in all 2 phases");
    const auto still = judge_phases(pair, {{0.1, 0.1}, {0.2, 0.2}});
    CHECK(phase_sentence(*still, "a", "b") ==
          "a beats b by 100 % wherever sigma lies in its binade");
}

TEST_CASE("no contest without two cells that err in every phase") {
    CHECK_FALSE(judge_phases(pair, {}));
    CHECK_FALSE(judge_phases(pair, {{0.1, 0.1}}));
    CHECK_FALSE(judge_phases(pair, {{0.1, 0.0}, {0.2, 0.2}}));
}

TEST_CASE("phases of results are taken together tensor by tensor") {
    const sweep_plan plan = plan_sweep({{"mxfp8", "mxfp4", "mxfp4:scale=even"}, {}, ""});
    analysis::analysis a;
    for (const family& f : scale_families(plan)) a.scale_differences.emplace_back(f.cells.size());
    for (const std::string tensor : {"a", "b", "exact"}) {
        const double size = tensor == "a" ? 1 : tensor == "b" ? 4 : 0;
        for (const cell& c : plan.cells) {
            for (std::int64_t p = 0; p < 16; ++p) {
                const double error = c.name == "mxfp8"   ? 0.01
                                     : c.name == "mxfp4" ? 0.1
                                     : p < 4             ? 0.09
                                                         : 0.12;
                tests::add(a.results, {tensor, c.name, size * error, 4.25, "weight", {}, p});
            }
        }
    }
    const comparison c = evaluate(plan, a, true);
    // Figures are those of phase 0.
    CHECK(c.table.of(0, 2).rmse == Approx(0.09));
    CHECK(c.table.of(0, 2, 4).rmse == Approx(0.12));
    CHECK(c.overall.cells.size() == 3);
    REQUIRE(c.phases.size() == 2);
    CHECK(c.phases[0].name.empty());
    REQUIRE(c.phases[0].contest);
    CHECK(c.phases[0].contest->best == 0);
    CHECK(c.phases[1].name == "mxfp4");
    REQUIRE(c.phases[1].contest);
    CHECK(c.phases[1].contest->best == 2);
    CHECK(c.phases[1].contest->reversed == 12);
    CHECK(c.phases[1].contest->win() == Approx(0.1 / 0.09 - 1));
    // The geometric mean over a and b; the exact tensor is left out.
    CHECK(c.phases[1].errors[0][0] == Approx(0.2));
    const report::record members = comparison_members(plan, c);
    const auto& phase = std::get<report::record>(*report::find(members, "phase"));
    CHECK(std::get<report::list>(*report::find(phase, "factors")).size() == 16);
    const auto& tensors = std::get<report::list>(*report::find(phase, "tensors"));
    REQUIRE(tensors.size() == 3);
    const auto& first = std::get<report::record>(tensors[0]);
    const auto& contests = std::get<report::list>(*report::find(first, "contests"));
    REQUIRE(contests.size() == 2);
    CHECK(std::get<std::int64_t>(
              *report::find(std::get<report::record>(contests[1]), "reversed")) == 12);
    const auto& none = std::get<report::record>(tensors[2]);
    CHECK(std::get<report::list>(*report::find(none, "contests"))[0] == report::value());
}

TEST_CASE("a sweep of phases moves what a binade decides, and nothing at phase 0") {
    tests::memory_model model;
    model.add("ones", tensor::dtype::f32, {4, 32}, std::vector<float>(128, 1.0f));
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    std::vector<float> x(64 * 128);
    for (float& v : x) v = normal(random);
    model.add("normal", tensor::dtype::f32, {64, 128}, x);
    const sweep_plan plan = plan_sweep({{"mxfp4", "mxfp4:scale=even", "mxfp8"}, {}, ""});
    std::list<analysis::analysis> kept;  // comparisons refer to them
    const auto run = [&](bool phases, int threads) {
        engine::run_control control;
        control.threads = threads;
        kept.push_back(analysis::analyze(model.all(), request_of(plan, phases), control));
        return evaluate(plan, kept.back(), phases);
    };
    const comparison still = run(false, 1);
    const comparison moved = run(true, 3);
    CHECK(still.phases.empty());
    REQUIRE(moved.table.tensors.size() == 2);
    for (std::size_t t = 0; t < 2; ++t) {
        for (std::size_t r = 0; r < plan.recipes.size(); ++r) {
            CHECK(moved.table.of(t, r).rmse == still.table.of(t, r).rmse);
        }
    }
    CHECK(moved.scale_differences[0].differ == still.scale_differences[0].differ);
    CHECK(moved.scale_differences[0].blocks == 4 + 64 * 4);
    // A power of two is exact; 2^(4/16) = 1.189 becomes 1 under both rules, off by its logarithm.
    CHECK(moved.table.of(0, 0, 0).nrmse == 0.0);
    const double factor = std::exp2(0.25);
    CHECK(moved.table.of(0, 0, 4).nrmse == Approx((factor - 1) / factor).epsilon(1e-6));
    // Over the normally distributed tensor: e4m3 stays far ahead, the rules of e2m1 contend.
    REQUIRE(moved.phases.size() == 2);
    REQUIRE(moved.phases[0].contest);
    CHECK(plan.cells[moved.phases[0].contest->best].name == "mxfp8");
    CHECK(moved.phases[0].contest->reversed == 0);
    REQUIRE(moved.phases[1].contest);
    CHECK(moved.phases[1].name == "mxfp4");
    CHECK(moved.phases[1].contest->swing() > 0.005);
}

TEST_CASE("a tensor that a factor carries beyond float32 is left out of the phases") {
    const sweep_plan plan = plan_sweep({{"mxfp8", "mxfp4"}, {}, ""});
    analysis::result_list results;
    for (const std::string tensor : {"a", "huge"}) {
        for (const cell& c : plan.cells) {
            for (std::int64_t p = 0; p < 16; ++p) {
                const bool cut = tensor == "huge" && p == 15;
                const double error = c.name == "mxfp8" ? 0.01 : tensor == "a" ? 0.1 : 0.5;
                tests::add(results, {tensor, c.name, error, 4.25, "weight", {}, p, cut ? 32 : 64});
            }
        }
    }
    analysis::results_table b(codec::parse_recipes({"mxfp8", "mxfp4"}), phase_count);
    b.add(results);
    const auto errors = phase_errors(b, plan, pair, all_tensors(b));
    REQUIRE(errors.size() == 2);
    CHECK(errors[1].front() == Approx(0.1));
}
