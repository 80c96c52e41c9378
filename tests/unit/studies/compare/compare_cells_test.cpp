// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/studies/compare/cells.hpp"
#include "libmx/studies/compare/families.hpp"
#include "tests/catch.hpp"

using namespace mx;
using namespace mx::compare;

namespace {

std::vector<std::string> names(const sweep_plan& plan) {
    std::vector<std::string> all;
    for (const cell& c : plan.cells) all.push_back(c.name);
    return all;
}

std::string refusal(const sweep_request& request) {
    try {
        plan_sweep(request);
    } catch (const base::error& e) {
        CHECK(e.kind() == base::error_kind::usage);
        return e.message();
    }
    return "";
}

using list = std::vector<std::string>;

}  // namespace

TEST_CASE("a sweep is the product of its axes, the last one fastest") {
    const sweep_plan plan = plan_sweep(
        {{"mxfp8"},
         {{"element", {"e4m3", "e2m1"}}, {"block", {"1x32", "4x4"}}, {"scale", {"floor", "even"}}},
         ""});
    CHECK(names(plan) == list{"mxfp8", "mxfp8:scale=even", "mxfp8:block=4x4",
                              "mxfp8:scale=even,block=4x4", "mxfp4", "mxfp4:scale=even",
                              "mxfp4:block=4x4", "mxfp4:scale=even,block=4x4"});
    CHECK(plan.left_out.empty());
    CHECK(plan.recipes.size() == 8);
    CHECK(plan.baseline.name == "mxfp8");
    CHECK(plan.baseline_is_cell);
}

TEST_CASE("an axis replaces what a recipe says about its key and leaves the rest") {
    const sweep_plan plan =
        plan_sweep({{"mxfp4:scale=even,block=1x16"}, {{"scale", {"rceil", "floor"}}}, ""});
    CHECK(names(plan) == list{"mxfp4:scale=rceil,block=1x16", "mxfp4:block=1x16"});
}

TEST_CASE("two spellings of one recipe are one cell") {
    const sweep_plan plan = plan_sweep({{"mxfp4", "mxfp8"},
                                        {{"element", {"e2m1", "e2m1"}}, {"round", {"rtne"}}},
                                        "mxfp4:scale=floor"});
    CHECK(names(plan) == list{"mxfp4"});
    CHECK(plan.recipes.size() == 1);
    CHECK(plan.baseline_is_cell);
}

TEST_CASE("what a format or dialect cannot take is left out with the reason") {
    const sweep_plan plan =
        plan_sweep({{"mxfp4", "nvfp4"}, {{"scale", {"floor", "two-level"}}}, ""});
    CHECK(names(plan) == list{"mxfp4", "nvfp4"});
    REQUIRE(plan.left_out.size() == 2);
    CHECK(plan.left_out[0].recipe == "mxfp4:scale=two-level");
    CHECK(plan.left_out[0].reason.find("ue4m3") != std::string::npos);
    // The recipe is not named twice.
    CHECK(plan.left_out[0].reason.find("recipe '") == std::string::npos);
    CHECK(plan.left_out[1].recipe == "nvfp4:scale=floor");
}

TEST_CASE("a sweep without a cell, and bases that are no recipes, are refused") {
    const std::string nothing = refusal({{"nvfp4"}, {{"scale", {"floor", "even"}}}, ""});
    CHECK(nothing.find("nvfp4:scale=floor") != std::string::npos);
    CHECK(nothing.find("ue4m3") != std::string::npos);
    CHECK(refusal({{"mxfp5"}, {}, ""}).find("mxfp5") != std::string::npos);
    CHECK(refusal({{"mxfp4"}, {}, "mxfp5"}).find("mxfp5") != std::string::npos);
    const list blocks(100, "1x32"), rounds(100, "away");
    CHECK(refusal({{"mxfp4"}, {{"block", blocks}, {"round", rounds}}, ""}).find("combinations") !=
          std::string::npos);
}

TEST_CASE("a cell that draws random numbers stands for several seeds") {
    const sweep_plan plan = plan_sweep(
        {{"mxfp4:seed=7"}, {{"round", {"rtne", "stochastic"}}}, "mxfp4:round=stochastic", 3});
    REQUIRE(plan.cells.size() == 2);
    CHECK(plan.cells[0].runs.size() == 1);
    REQUIRE(plan.cells[1].runs.size() == 3);
    for (std::uint64_t i = 0; i < 3; ++i) {
        CHECK(plan.recipes[plan.cells[1].runs[i]].seed == 7 + i);
    }
    // The baseline has another seed, so it is not a cell and has separate seeds.
    CHECK_FALSE(plan.baseline_is_cell);
    CHECK(plan.baseline.runs.size() == 3);
    CHECK(plan.recipes.size() == 7);
}

TEST_CASE("cells with overlapping seeds share recipes") {
    const sweep_plan plan =
        plan_sweep({{"mxfp4:round=stochastic,seed=18446744073709551615", "mxfp4:round=stochastic"},
                    {},
                    "",
                    2});
    REQUIRE(plan.cells.size() == 2);
    CHECK(plan.recipes.size() == 3);  // seeds 2^64 - 1, 0, 1
    CHECK(plan.cells[0].runs[1] == plan.cells[1].runs[0]);
}

TEST_CASE("families differ in the scale rule only") {
    const sweep_plan plan = plan_sweep({{"mxfp4"},
                                        {{"block", {"1x32", "4x4"}},
                                         {"round", {"rtne", "stochastic"}},
                                         {"scale", {"even", "floor"}}},
                                        ""});
    const auto rules = rule_families(plan);
    REQUIRE(rules.size() == 4);
    CHECK(rules[0].name == "mxfp4");
    CHECK(rules[0].cells == std::vector<std::size_t>{0, 1});
    CHECK(rules[1].name == "mxfp4:round=stochastic");
    // Rounding does not decide scales: one matrix per block shape.
    const auto scales = scale_families(plan);
    REQUIRE(scales.size() == 2);
    CHECK(scales[0].cells == std::vector<std::size_t>{0, 1});
    CHECK(scales[1].name == "mxfp4:block=4x4");
    CHECK(scales[1].cells == std::vector<std::size_t>{4, 5});
    const sweep_plan numbers = plan_sweep({{"fp8_1x128"}, {{"scale", {"amax", "amax-pow2"}}}, ""});
    CHECK(rule_families(numbers).size() == 1);
    CHECK(scale_families(numbers).empty());
}

TEST_CASE("a value that no recipe has is refused beside others that are fine") {
    CHECK(refusal({{"mxfp4"}, {{"scale", {"floor", "evn"}}}, ""}).find("did you mean 'even'") !=
          std::string::npos);
    CHECK(refusal({{"mxfp4"}, {{"transform_size", {"16", "1281"}}}, ""})
              .starts_with("transform_size=1281: give"));
    // Values of another format are left out, not refused.
    CHECK(plan_sweep({{"mxfp4"}, {{"scale", {"floor", "amax"}}}, ""}).left_out.size() == 1);
}
