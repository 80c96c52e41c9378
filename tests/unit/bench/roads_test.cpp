// SPDX-License-Identifier: Apache-2.0
// The recipes that `mx bench --roads` measures, and the kernels that process them; not the rates.
#include <algorithm>
#include <set>
#include <string>

#include "libmx/bench/road_recipes.hpp"
#include "libmx/bench/roads.hpp"
#include "libmx/codec/backends.hpp"
#include "tests/catch.hpp"

using namespace mx;
using namespace mx::bench;

namespace {

bool contains(const std::vector<road_recipe>& all, std::string_view family) {
    return std::any_of(all.begin(), all.end(),
                       [&](const road_recipe& r) { return r.family == family; });
}

}  // namespace

TEST_CASE("a recipe is left to the reference if and only if the list says so", "[roads]") {
    const std::vector<road_recipe> all = road_recipes();
    CHECK(codec::to_string(all.front().recipe) == "mxfp4");
    CHECK(all.size() > 80);
    std::set<std::string> names;
    std::set<std::string> scalar;
    for (const road_recipe& r : all) {
        const std::string name = codec::to_string(r.recipe);
        CHECK(names.insert(name).second);
        bool vector = false;
        for (const codec::backend& b : codec::backends()) {
            if (b.is_device() || b.name == "scalar") continue;
            const bool own = serving_backend(b, r.recipe) == b.name;
            CHECK((own || serving_backend(b, r.recipe) == "scalar"));
            vector = vector || own;
        }
        if (!vector) scalar.insert(name);
    }
    // One that has gained kernels leaves the list, one that has lost them is a defect.
    const std::set<std::string> listed(scalar_recipes.begin(), scalar_recipes.end());
    CHECK(scalar == listed);
    for (const char* family : {"format", "rule", "rounding", "element and scale", "block", "offset",
                               "rotation", "dialect"}) {
        CAPTURE(family);
        CHECK(contains(all, family));
    }
}

TEST_CASE("a road is set beside the first one, reads and the roof of its traffic", "[roads]") {
    const bandwidth b{1, 8e9, 16e9};
    road r{"command", "writes", "scalar", 2, 6, {}};
    road_rate rate = rate_of(r, 1e9, 4e9, b);
    CHECK(rate.elements_per_second == 1e9);
    CHECK(rate.of_first == 0.25);
    CHECK(rate.of_read_bandwidth == 0.25);
    CHECK(rate.of_roof == 0.5);  // 8 GB/s of copies
    r.writes = 0;
    rate = rate_of(r, 1e9, 4e9, b);
    CHECK(rate.of_roof == 0.25);  // of reads
}

TEST_CASE("roads take turns over the rows of one matrix", "[roads]") {
    std::vector<std::string> order;
    std::uint64_t rows = 0;
    const auto pass_of = [&](const char* name) {
        return [&order, &rows, name](const analysis::matrix& m) {
            order.emplace_back(name);
            rows = std::max(rows, m.rows);
            return m.rows * m.cols;
        };
    };
    const std::vector<road> roads{{"a", "first", "scalar", 2, 0, pass_of("first")},
                                  {"a", "second", "scalar", 2, 0, pass_of("second")}};
    road_request request;
    request.elements = 4096 * 512;
    request.seconds = 0;
    const road_table t = measure_roads(roads, request, nullptr, {});
    REQUIRE(t.rates.size() == 2);
    CHECK(t.elements == request.elements);
    CHECK(t.rates.front().of_first == 1);
    CHECK(t.machine.read > 0);
    CHECK(t.machine.copy > 0);
    REQUIRE(order.size() >= 12);
    for (std::size_t i = 0; i < order.size(); ++i) {
        CHECK(order[i] == (i % 2 == 0 ? "first" : "second"));
    }
    CHECK(rows <= 512);
}
