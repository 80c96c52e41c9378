// SPDX-License-Identifier: Apache-2.0
// The recipes that `mx bench --suite` measures, and the kernels that process them; not the rates.
#include <algorithm>
#include <set>
#include <string>

#include "libmx/bench/suite.hpp"
#include "libmx/bench/suite_recipes.hpp"
#include "libmx/codec/backends.hpp"
#include "tests/catch.hpp"

using namespace mx;
using namespace mx::bench;

namespace {

bool contains(const std::vector<suite_recipe>& all, std::string_view group) {
    return std::any_of(all.begin(), all.end(),
                       [&](const suite_recipe& r) { return r.group == group; });
}

}  // namespace

TEST_CASE("a recipe is left to the reference if and only if the list says so", "[suite]") {
    const std::vector<suite_recipe> all = suite_recipes();
    CHECK(codec::to_string(all.front().recipe) == "mxfp4");
    CHECK(all.size() > 80);
    std::set<std::string> names;
    std::set<std::string> scalar;
    for (const suite_recipe& r : all) {
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
    for (const char* group : {"format", "rule", "rounding", "element and scale", "block", "offset",
                              "rotation", "dialect"}) {
        CAPTURE(group);
        CHECK(contains(all, group));
    }
}

TEST_CASE("a case is set beside the first one, reads and the roof of its traffic", "[suite]") {
    const bandwidth b{1, 8e9, 16e9};
    suite_case r{"command", "writes", "scalar", 2, 6, {}};
    suite_rate rate = rate_of(r, 1e9, 4e9, b);
    CHECK(rate.elements_per_second == 1e9);
    CHECK(rate.of_first == 0.25);
    CHECK(rate.of_read_bandwidth == 0.25);
    CHECK(rate.of_roof == 0.5);  // 8 GB/s of copies
    r.writes = 0;
    rate = rate_of(r, 1e9, 4e9, b);
    CHECK(rate.of_roof == 0.25);  // of reads
}

TEST_CASE("cases take turns over the rows of one matrix", "[suite][slow]") {
    std::vector<std::string> order;
    std::uint64_t rows = 0;
    const auto pass_of = [&](const char* name) {
        return [&order, &rows, name](const analysis::matrix& m) {
            order.emplace_back(name);
            rows = std::max(rows, m.rows);
            return m.rows * m.cols;
        };
    };
    const std::vector<suite_case> cases{{"a", "first", "scalar", 2, 0, pass_of("first")},
                                        {"a", "second", "scalar", 2, 0, pass_of("second")}};
    suite_request request;
    request.elements = 4096 * 512;
    request.seconds = 0;
    const suite_table t = measure_suite(cases, request, nullptr, {});
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
