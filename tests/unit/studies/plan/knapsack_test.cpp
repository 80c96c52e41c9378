// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include "libmx/studies/plan/knapsack.hpp"
#include "tests/catch.hpp"

using namespace mx::plan;

namespace {

struct totals {
    std::uint64_t cost = 0;
    std::uint64_t weight = 0;
};

totals totals_of(const std::vector<knapsack_class>& classes,
                 const std::vector<std::uint32_t>& chosen) {
    totals t;
    for (std::size_t k = 0; k < classes.size(); ++k) {
        t.cost += classes[k].at(chosen[k]).cost;
        t.weight += classes[k].at(chosen[k]).weight;
    }
    return t;
}

// Every selection, one after the other.
std::optional<totals> brute_force(const std::vector<knapsack_class>& classes,
                                  std::uint64_t capacity) {
    std::optional<totals> best;
    std::vector<std::uint32_t> at(classes.size(), 0);
    while (true) {
        const totals t = totals_of(classes, at);
        if (t.weight <= capacity &&
            (!best || t.cost < best->cost || (t.cost == best->cost && t.weight < best->weight))) {
            best = t;
        }
        std::size_t k = 0;
        while (k < at.size() && ++at[k] == classes[k].size()) at[k++] = 0;
        if (k == at.size()) return best;
    }
}

using generator = std::mt19937_64;

std::vector<knapsack_class> small_instance(generator& draw, int kind) {
    std::vector<knapsack_class> classes(1 + draw() % 6);
    for (knapsack_class& c : classes) {
        const std::size_t size = 1 + draw() % 4;
        const std::uint64_t elements = 1 + draw() % 8;
        for (std::size_t i = 0; i < size; ++i) {
            switch (kind) {
                case 0:  // anything, with many ties
                    c.push_back({draw() % 8, draw() % 8});
                    break;
                case 1:  // like tensors: the bits of a few formats, with decreasing errors
                    c.push_back({(draw() % 1000 + 1) * elements * (8 - 2 * i) + (draw() % 2),
                                 elements * (4 + 2 * i) * 32});
                    break;
                default:  // large numbers
                    c.push_back(
                        {draw() % (std::uint64_t{1} << 55), draw() % (std::uint64_t{1} << 55)});
            }
        }
        if (kind == 1 && draw() % 3 == 0) c.back().cost = 0;
    }
    return classes;
}

}  // namespace

TEST_CASE("a knapsack is packed as by trying everything") {
    generator draw(7);
    int feasible = 0;
    int searched = 0;
    for (int i = 0; i < 3000; ++i) {
        const std::vector<knapsack_class> classes = small_instance(draw, i % 3);
        std::uint64_t least = 0;
        std::uint64_t most = 0;
        for (const knapsack_class& c : classes) {
            std::uint64_t low = c[0].weight;
            std::uint64_t high = 0;
            for (const knapsack_choice& x : c) {
                low = std::min(low, x.weight);
                high = std::max(high, x.weight);
            }
            least += low;
            most += high;
        }
        // From slightly too small to slightly too large.
        const std::uint64_t span = most - least + 3;
        const std::uint64_t capacity = (least == 0 ? 0 : least - 1) + draw() % span;
        const std::optional<totals> want = brute_force(classes, capacity);
        const std::optional<knapsack_selection> got = solve_knapsack(classes, capacity);
        REQUIRE(got.has_value() == want.has_value());
        const std::optional<knapsack_selection> cheap = least_cost(classes, capacity);
        REQUIRE(cheap.has_value() == want.has_value());
        if (!want) continue;
        ++feasible;
        CHECK(got->optimal);
        CHECK(got->cost == want->cost);
        CHECK(got->weight == want->weight);
        CHECK(got->bound == want->cost);
        const totals check = totals_of(classes, got->chosen);
        CHECK(check.cost == got->cost);
        CHECK(check.weight == got->weight);
        CHECK(cheap->optimal);
        CHECK(cheap->cost == want->cost);
        CHECK(cheap->weight <= capacity);
        CHECK(totals_of(classes, cheap->chosen).cost == cheap->cost);

        // With nothing to remember: a selection all the same, and a bound that is one.
        const std::optional<knapsack_selection> quick = solve_knapsack(classes, capacity, 0);
        REQUIRE(quick.has_value());
        CHECK(totals_of(classes, quick->chosen).weight <= capacity);
        CHECK(totals_of(classes, quick->chosen).cost == quick->cost);
        CHECK(quick->bound <= want->cost);
        CHECK(quick->cost >= want->cost);
        if (quick->optimal) CHECK(quick->cost == want->cost);
        searched += quick->optimal ? 0 : 1;
    }
    CHECK(feasible > 1500);
    CHECK(searched > 20);
}

TEST_CASE("of equal choices the first is taken, and of equal costs the lighter one") {
    const std::vector<knapsack_class> classes{{{5, 9}, {5, 4}, {5, 4}, {7, 4}}};
    const auto got = solve_knapsack(classes, 100);
    REQUIRE(got.has_value());
    CHECK(got->chosen == std::vector<std::uint32_t>{1});
}

TEST_CASE("no class is an empty selection, and a class without a choice is refused") {
    const auto nothing = solve_knapsack({}, 0);
    REQUIRE(nothing.has_value());
    CHECK(nothing->chosen.empty());
    CHECK(nothing->optimal);
    CHECK_THROWS(solve_knapsack({{}}, 5));
    CHECK_THROWS(solve_knapsack({{{std::uint64_t{1} << 62, 1}}}, 5));
}

TEST_CASE("the hull holds the best of its weights, and nothing lies below it") {
    generator draw(11);
    for (int i = 0; i < 300; ++i) {
        const std::vector<knapsack_class> classes = small_instance(draw, i % 3);
        const std::vector<knapsack_point> hull = knapsack_hull(classes);
        REQUIRE(!hull.empty());
        for (std::size_t k = 0; k < hull.size(); ++k) {
            const auto best = brute_force(classes, hull[k].weight);
            REQUIRE(best.has_value());
            CHECK(best->cost == hull[k].cost);
            if (k > 0) CHECK(hull[k].weight > hull[k - 1].weight);
            if (k > 0) CHECK(hull[k].cost < hull[k - 1].cost);
        }
        // The last point has the least possible cost.
        CHECK(brute_force(classes, std::uint64_t{1} << 62)->cost == hull.back().cost);
        if (hull.front().weight > 0) {
            CHECK(!brute_force(classes, hull.front().weight - 1).has_value());
        }
    }
}
