// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/regret.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;

namespace {

tests::memory_model normal_model() {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> x(64 * 256);
    for (float& v : x) v = normal(random);
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {64, 256}, x);
    model.add("zeros", tensor::dtype::f32, {2, 32}, std::vector<float>(64));
    return model;
}

analysis::analysis_request request_of(const std::vector<const char*>& recipes) {
    analysis::analysis_request request;
    for (const char* r : recipes) request.recipes.push_back(codec::parse_recipe(r));
    return request;
}

}  // namespace

TEST_CASE("regret is the error less that of the searched scales") {
    const tests::memory_model model = normal_model();
    const auto request =
        request_of({"mxfp4", "mxfp4:scale=rceil", "nvfp4", "nvfp4:dialect=te", "mxfp4:scale=search",
                    "fp8_1x128", "mxfp4:offset=fp16", "nvfp4:scale=search"});
    analysis::analysis a = analysis::analyze(model.all(), request, {});
    analysis::add_regrets(a.results, model.all(), request, {});
    REQUIRE(a.results.size() == 16);
    const auto& r = a.results;
    const double best_mx = r[4].rmse, best_nv = r[7].rmse;
    CHECK(r[0].best_rmse == best_mx);
    CHECK(r[0].regret == Approx(r[0].rmse * r[0].rmse - best_mx * best_mx));
    CHECK(r[0].regret_share == Approx(1 - best_mx * best_mx / (r[0].rmse * r[0].rmse)));
    CHECK(r[0].regret_share > 0.05);
    CHECK(r[1].regret_share > 0.05);
    CHECK(r[2].regret_share == Approx(1 - 0.00659 / 0.00903).margin(0.03));
    CHECK(r[3].best_rmse == best_nv);
    CHECK(r[4].regret == 0);
    CHECK(r[4].regret_share == 0);
    for (const std::size_t undefined : {5u, 6u}) {
        CHECK(std::isnan(r[undefined].regret));
        CHECK(std::isnan(r[undefined].best_rmse));
    }
    // Zeros have no error, so regret is zero.
    CHECK(r[8].regret == 0);
    CHECK(std::isnan(r[8].regret_share));
    for (const analysis::result& one : r) CHECK(one.with_regret);
    // Two searched recipes over the elements of both tensors.
    CHECK(analysis::regret_cost(model.all(), request) == 2 * (64 * 256 + 64));
}

TEST_CASE("regrets are told by phase, and come back from records") {
    const tests::memory_model model = normal_model();
    auto request = request_of({"mxfp4"});
    request.factors = {1.0F, 1.5F};
    analysis::analysis a = analysis::analyze(model.all(), request, {});
    analysis::add_regrets(a.results, model.all(), request, {});
    REQUIRE(a.results.size() == 4);
    CHECK(a.results[0].best_rmse != a.results[1].best_rmse);
    CHECK(analysis::regret_cost(model.all(), request) == 2 * (64 * 256 + 64));
    const double regret = a.results[1].regret;
    const auto back = analysis::results_of(analysis::records_of(a.results), "x.json");
    CHECK(back[1].with_regret);
    CHECK(back[1].regret == regret);
}
