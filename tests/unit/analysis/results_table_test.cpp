// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "libmx/analysis/results_table.hpp"
#include "tests/catch.hpp"

using namespace mx;
using namespace mx::analysis;

namespace {

struct made {
    std::string file, tensor, recipe;
    double rmse;
    std::uint64_t elements = 64;
    std::int64_t phase = 0;
};

result_list list_of(const std::vector<made>& all) {
    result_list list;
    for (const made& m : all) {
        tensor_identity of;
        of.file = m.file;
        of.tensor = m.tensor;
        result r;
        r.of = std::make_shared<tensor_identity>(of);
        r.under =
            std::make_shared<named_recipe>(named_recipe{m.recipe, codec::parse_recipe(m.recipe)});
        r.rmse = m.rmse;
        r.elements = m.elements;
        r.phase = m.phase;
        list.push_back(r);
    }
    return list;
}

std::vector<std::string> columns(const results_table& t) {
    std::vector<std::string> names;
    for (const named_recipe& r : t.recipes) names.push_back(r.name);
    return names;
}

TEST_CASE("results of several lists are one table, in the order of the first of each") {
    results_table t;
    CHECK(t.add(list_of({{"a", "w", "mxfp4", 0.5}, {"a", "v", "nvfp4", 0.25}})) == 0);
    CHECK(t.add(list_of({{"b", "w", "mxfp8", 0.1}, {"a", "w", "mxfp8", 0.125}})) == 0);
    CHECK(columns(t) == std::vector<std::string>{"mxfp4", "nvfp4", "mxfp8"});
    REQUIRE(t.tensors.size() == 3);
    CHECK(t.find("a", "w") == 0);
    CHECK(t.find("a", "v") == 1);
    CHECK(t.find("b", "w") == 2);
    CHECK_FALSE(t.find("b", "v"));
    CHECK(t.find("mxfp8") == 2);
    CHECK_FALSE(t.find("mxfp6"));
    CHECK(t.of(0, 2).rmse == 0.125);
    CHECK(t.of(2, 2).rmse == 0.1);
    CHECK_FALSE(t.has(1, 0));
    CHECK(std::isnan(t.of(1, 0).rmse));
    CHECK(t.of(1, 0).elements == 0);
    CHECK(t.first_of(2).under->name == "mxfp8");
    REQUIRE(t.all_of(0).size() == 2);
    CHECK(t.all_of(0)[1].rmse == 0.125);
    // A model can list tensors behind those that were measured.
    CHECK_FALSE(t.has(3, 0));
}

TEST_CASE("of several results of one place the first with a figure counts") {
    const double nan = std::nan("");
    results_table t;
    CHECK(t.add(list_of({{"a", "w", "mxfp4", nan, 0}, {"a", "v", "mxfp4", 0.5}})) == 0);
    CHECK(t.add(list_of({{"a", "w", "mxfp4", 0.25}, {"a", "v", "mxfp4", 0.125}})) == 1);
    CHECK(t.add(list_of({{"a", "w", "mxfp4", nan, 0}, {"a", "w", "mxfp4", 0.5}})) == 1);
    CHECK(t.of(0, 0).rmse == 0.25);
    CHECK(t.of(1, 0).rmse == 0.5);
}

TEST_CASE("a table for some recipes and factors leaves out what is of others") {
    const result_list list = list_of({{"a", "v", "mxfp6", 0.5},
                                      {"a", "w", "nvfp4", 0.25, 64, 1},
                                      {"a", "w", "mxfp4", 0.125, 64, 0},
                                      {"a", "w", "mxfp4", 0.375, 64, 2}});
    const std::vector<codec::recipe> recipes = codec::parse_recipes({"mxfp4", "nvfp4"});
    results_table t(recipes, 2);
    CHECK(t.add(list) == 0);
    CHECK(t.phases() == 2);
    CHECK(columns(t) == std::vector<std::string>{"mxfp4", "nvfp4"});
    REQUIRE(t.tensors.size() == 1);
    CHECK(t.of(0, 0).rmse == 0.125);
    CHECK_FALSE(t.has(0, 0, 1));
    CHECK_FALSE(t.has(0, 1));
    CHECK(t.of(0, 1, 1).rmse == 0.25);
    // By default the first factor alone.
    results_table first;
    first.add(list);
    CHECK(columns(first) == std::vector<std::string>{"mxfp6", "mxfp4"});
}

}  // namespace
