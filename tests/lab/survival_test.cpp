// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "libmx/lab/survival.hpp"
#include "tests/catch.hpp"

namespace mx::lab {
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
}

}  // namespace
}  // namespace mx::lab
