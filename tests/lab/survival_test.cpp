// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "libmx/experiments/survival.hpp"
#include "tests/catch.hpp"

namespace mx::experiments {
namespace {

// Remission times of Freireich et al. (1963), a textbook example: 21 patients under 6-MP, 21 under
// placebo. Textbooks state S(10) = 0.753 and a log-rank chi-squared of 16.79.
const std::vector<lifetime> treated{
    {6, true},   {6, true},   {6, true},   {6, false},  {7, true},   {9, false},  {10, true},
    {10, false}, {11, false}, {13, true},  {16, true},  {17, false}, {19, false}, {20, false},
    {22, true},  {23, true},  {25, false}, {32, false}, {32, false}, {34, false}, {35, false}};
const std::vector<lifetime> placebo{
    {1, true},  {1, true},  {2, true},  {2, true},  {3, true},  {4, true},  {4, true},
    {5, true},  {5, true},  {8, true},  {8, true},  {8, true},  {8, true},  {11, true},
    {11, true}, {12, true}, {12, true}, {15, true}, {17, true}, {22, true}, {23, true}};

TEST_CASE("survival curves and the log-rank test give a textbook's numbers") {
    const auto curve = survival_of(treated);
    for (const survival_point& p : curve) {
        CHECK(p.low <= p.share);
        CHECK(p.share <= p.high);
        if (p.step == 10) CHECK(std::abs(p.share - 0.7529) < 1e-3);
        if (p.step == 23) CHECK(std::abs(p.share - 0.4482) < 1e-3);
    }
    CHECK(survival_of(placebo).back().share == 0);
    const auto test = log_rank(treated, placebo);
    REQUIRE(test);
    CHECK(std::abs(test->chi_squared - 16.793) < 1e-2);
    CHECK(test->p < 1e-4);
    CHECK_FALSE(log_rank({}, placebo));
    const std::vector<lifetime> stable(8, {100, false});
    CHECK_FALSE(log_rank(stable, stable));
    CHECK(std::abs(survival_of(stable).back().low - 0.6306) < 1e-3);  // 0.025^(1/8)
}

TEST_CASE("paired gaps have Student's interval") {
    const std::vector<double> d{1, 2, 3, 4, 5};
    const auto gap = gap_of(d);
    REQUIRE(gap);
    CHECK(gap->mean == 3);
    CHECK(std::abs(gap->high - (3 + 2.776445105198054 * std::sqrt(2.5 / 5))) < 1e-9);
    CHECK_FALSE(gap_of(std::vector<double>{1}));
    // t = 3 / sqrt(0.5) with 4 degrees of freedom.
    CHECK(std::abs(gap->p - 0.01324) < 1e-4);
    CHECK(gap_of(std::vector<double>{-1, 1})->p == 1);
}

TEST_CASE("runs that ended early do not narrow the interval of stable ones") {
    std::vector<lifetime> runs(7, {100, false});
    runs.push_back({2, false});
    CHECK(std::abs(survival_of(runs).back().low - 0.5904) < 1e-3);  // 0.025^(1/7)
}

TEST_CASE("families of tests are adjusted by Holm's method") {
    const std::vector<double> p{0.04, 0.01, 0.03, 0.005};
    const std::vector<double> expected{0.06, 0.03, 0.06, 0.02};
    const std::vector<double> adjusted = holm(p);
    for (std::size_t i = 0; i < p.size(); ++i) CHECK(std::abs(adjusted[i] - expected[i]) < 1e-12);
    CHECK(holm(std::vector<double>{0.9, 0.8}) == std::vector<double>(2, 1.0));
    CHECK(holm({}).empty());
}

TEST_CASE("80 % power takes more than the half width of an interval") {
    // Large samples: (1.960 + 0.842) / 1.960; n = 8: noncentral t 3.28 over 2.365 times the median
    // deviation 0.951.
    CHECK(std::abs(detectable_gap(64) - 1.43) < 0.04);
    CHECK(std::abs(detectable_gap(8) - 1.46) < 0.05);
    // Fisher's exact test of 0 of 16 needs 5; a share found with 80 % power is larger.
    const auto least = detectable(0, 16, 16, 0.05);
    REQUIRE(least);
    CHECK(*least >= 5);
    CHECK(*least <= 8);
    CHECK_FALSE(detectable(0, 2, 2, 0.05));
    CHECK(detectable(5, 32, 32, 0.05).value() > 14);
}

}  // namespace
}  // namespace mx::experiments
