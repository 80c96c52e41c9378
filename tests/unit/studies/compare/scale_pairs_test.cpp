// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "libmx/studies/compare/comparison.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;
using namespace mx::compare;

TEST_CASE("scale bytes counted during an analysis differ as often as rosetta finds") {
    tests::memory_model model;
    std::mt19937 random(5);
    std::student_t_distribution<float> t(3.0f);
    for (const char* name : {"a", "b"}) {
        std::vector<float> x(200 * 300);
        for (float& v : x) v = t(random);
        x[17] = NAN;
        x[4000] = INFINITY;
        for (std::size_t i = 0; i < 64; ++i) x[600 + i] = 0;
        model.add(name, tensor::dtype::f32, {200, 300}, x);
    }
    const std::vector<std::string> rules{"floor", "ceil", "even", "rceil"};
    const sweep_plan plan =
        plan_sweep({{"mxfp4", "mxfp8:block=4x4", "nvfp4:block=32x1"}, {{"scale", rules}}, ""});
    const std::vector<family> families = scale_families(plan);
    REQUIRE(families.size() == 2);
    for (const int threads : {1, 3}) {
        engine::run_control control;
        control.threads = threads;
        const analysis::analysis a =
            analysis::analyze(model.all(), request_of(plan, false), control);
        REQUIRE(a.scale_differences.size() == 2);
        for (std::size_t g = 0; g < 2; ++g) {
            std::vector<codec::recipe> recipes;
            for (const std::size_t c : families[g].cells) recipes.push_back(plan.cells[c].recipe);
            const auto other = rosetta::compare_bytes(model.all(), recipes, control).total;
            CHECK(a.scale_differences[g].blocks == other.blocks);
            REQUIRE(a.scale_differences[g].differ.size() == other.pairs.size());
            for (std::size_t i = 0; i < other.pairs.size(); ++i) {
                CAPTURE(g, i);
                CHECK(a.scale_differences[g].differ[i] == other.pairs[i].scales_differ);
                CHECK(other.pairs[i].scales_differ > 0);
            }
        }
    }
}

TEST_CASE("figures do not depend on whether scale bytes are compared") {
    tests::memory_model model;
    std::mt19937 random(6);
    std::normal_distribution<float> normal;
    std::vector<float> x(100 * 64);
    for (float& v : x) v = normal(random);
    model.add("w", tensor::dtype::f32, {100, 64}, x);
    const sweep_plan plan = plan_sweep({{"mxfp4", "mxfp4:scale=even"}, {}, ""});
    analysis::analysis_request request = request_of(plan, false);
    const auto watched = analysis::analyze(model.all(), request, {});
    request.scale_groups.clear();
    const auto alone = analysis::analyze(model.all(), request, {});
    REQUIRE(watched.results.size() == 2);
    for (std::size_t i = 0; i < 2; ++i)
        CHECK(record_of(watched.results[i]) == record_of(alone.results[i]));
    CHECK(alone.scale_differences.empty());
}
