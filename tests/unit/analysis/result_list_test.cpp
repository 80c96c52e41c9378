// SPDX-License-Identifier: Apache-2.0
// Results in little memory: the output equals the input, bit for bit.
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "libmx/analysis/result_list.hpp"
#include "tests/catch.hpp"

using namespace mx;
using analysis::result;
using analysis::result_list;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// Results of tensors of five recipes each, with members that are set in some of them only.
std::vector<result> drawn(std::size_t count) {
    std::mt19937_64 random(7);
    const std::vector<double> figures{
        0.0,    -0.0, 1.0,      0x1.921fb54442d18p+1,
        5e-324, -2.5, infinite, std::numeric_limits<double>::quiet_NaN()};
    const auto figure = [&] { return figures[random() % figures.size()]; };
    const auto count_of = [&] { return random() % 3 == 0 ? random() >> (random() % 64) : 0; };
    std::vector<std::shared_ptr<const analysis::named_recipe>> recipes;
    for (const char* name : {"mxfp4", "mxfp8", "mxfp6", "nvfp4", "mxint8"}) {
        recipes.push_back(std::make_shared<analysis::named_recipe>(
            analysis::named_recipe{name, codec::parse_recipe(name)}));
    }
    std::vector<result> all;
    std::shared_ptr<const analysis::tensor_identity> of;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % recipes.size() == 0) {
            analysis::tensor_identity next;
            next.tensor = "layers." + std::to_string(i);
            next.shape = {i, 32};
            of = std::make_shared<analysis::tensor_identity>(next);
        }
        result r;
        r.of = of;
        r.under = recipes[i % recipes.size()];
        if (random() % 2 == 0) {
            analysis::group_facts facts;
            facts.worst_member = std::to_string(random());
            r.group = std::make_shared<analysis::group_facts>(facts);
        }
        if (random() % 2 == 0) r.phase = static_cast<std::int64_t>(random() % 4);
        if (random() % 4 == 0) r.more = {{"histogram", report::list{1.0, 2.0}}};
        r.decomposed = random() % 2 == 0;
        r.with_regret = random() % 8 == 0;
        if (r.with_regret) r.best_rmse = r.regret_share = 0.25;
        for (auto member : {&result::elements, &result::blocks, &result::nan, &result::inf,
                            &result::poisoned, &result::passes, &result::inexact_inputs}) {
            r.*member = count_of();
        }
        for (double& e : r.squared_error) e = analysis::value_or(figure(), -1);
        r.tensor_scale = figure();
        r.grid_error_share = figure();
        for (auto member : {&metrics::row::rmse, &metrics::row::sqnr_db, &metrics::row::gain,
                            &metrics::row::bits_per_element, &metrics::row::spread_error}) {
            r.*member = figure();
        }
        all.push_back(r);
    }
    return all;
}

// Members that records do not have, or not with their sign.
bool same(const result& a, const result& b) {
    return record_of(a) == record_of(b) && a.of == b.of && a.under == b.under &&
           a.group == b.group && a.phase == b.phase && a.decomposed == b.decomposed &&
           a.with_regret == b.with_regret && std::signbit(a.rmse) == std::signbit(b.rmse) &&
           std::signbit(a.squared_error[3]) == std::signbit(b.squared_error[3]);
}

}  // namespace

TEST_CASE("results are handed out as they were added") {
    const std::vector<result> all = drawn(1000);
    result_list list;
    CHECK(list.empty());
    CHECK(list.begin() == list.end());
    for (const result& r : all) list.push_back(r);
    const result_list copy = list;
    REQUIRE(copy.size() == all.size());
    std::size_t i = 0;
    for (const result& r : copy) {
        if (!same(r, all[i])) FAIL_CHECK("in order: " << i);
        ++i;
    }
    CHECK(i == all.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
        const std::size_t at = k * 617 % all.size();
        if (!same(copy[at], all[at])) FAIL_CHECK("at " << at);
    }
    CHECK(copy.front().of->tensor == "layers.0");
}

TEST_CASE("regrets are set behind the others") {
    result_list list = drawn(40);
    list.add_regret();
    list.set_regret(20, 0.5, 0.125, 0.75);
    for (const result& r : list) CHECK(r.with_regret);
    CHECK(list[20].best_rmse == 0.5);
    CHECK(list[20].regret == 0.125);
    CHECK(list[20].regret_share == 0.75);
    CHECK(std::isnan(list[39].regret));
}
