// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/groups.hpp"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;

namespace {

std::vector<float> values_of(std::size_t count, unsigned seed, float scale = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> x(count);
    for (float& v : x) v = normal(random);
    return x;
}

std::string expert(int layer, int number) {
    return "layers." + std::to_string(layer) + ".experts." + std::to_string(number) + ".up.weight";
}

std::vector<std::string> names_of(const analysis::grouping& g) {
    std::vector<std::string> names;
    for (const auto& group : g.groups) names.push_back(group.of->tensor);
    return names;
}

analysis::grouping grouped(const tests::memory_model& m, const std::vector<std::string>& by) {
    const auto all = m.all();
    return analysis::group_tensors(all, by, engine::role_finder());
}

}  // namespace

TEST_CASE("patterns take the words of names together") {
    tests::memory_model m;
    for (int layer = 0; layer < 2; ++layer) {
        for (int e = 0; e < 3; ++e) {
            m.add(expert(layer, e), tensor::dtype::f32, {4, 32}, std::vector<float>(128));
        }
    }
    m.add("head/experts", tensor::dtype::f32, {4, 32}, std::vector<float>(128));
    const analysis::grouping g = grouped(m, {"experts.*"});
    CHECK(names_of(g) == std::vector<std::string>{"layers.0.experts.*.up.weight",
                                                  "layers.1.experts.*.up.weight", "head/experts"});
    CHECK(g.group_of == std::vector<std::size_t>{0, 0, 0, 1, 1, 1, 2});
    CHECK(g.groups[0].tensors == 3);
    CHECK(g.groups[1].of->layer == 1);
    CHECK(g.groups[1].of->shape == tensor::shape{4, 32});
    CHECK(names_of(grouped(m, {"experts.*", "layers.*"})) ==
          std::vector<std::string>{"layers.*.experts.*.up.weight", "head/experts"});
    CHECK_FALSE(grouped(m, {"layers.*"}).groups[0].of->layer);
    CHECK(names_of(grouped(m, {"experts.[01]"})).size() == 5);
    CHECK(names_of(grouped(m, {"layer,role"})) ==
          std::vector<std::string>{"layer.0/weight", "layer.1/weight", "layer.none/weight"});
    CHECK(names_of(grouped(m, {"experts.*", "role"})) ==
          std::vector<std::string>{"layers.0.experts.*.up.weight", "layers.1.experts.*.up.weight",
                                   "weight"});
}

TEST_CASE("what differs in role, dtype or axes shares no record") {
    tests::memory_model m;
    m.add("l.0.a.weight", tensor::dtype::f32, {4, 32}, std::vector<float>(128));
    m.add("l.0.b.weight", tensor::dtype::f16, {4, 32}, std::vector<float>(128));
    m.add("l.0.c.weight", tensor::dtype::f32, {6, 48}, std::vector<float>(288));
    m.add("l.0.d.weight", tensor::dtype::f32, {2, 2, 32}, std::vector<float>(128));
    m.add("l.0.norm", tensor::dtype::f32, {32}, std::vector<float>(32));
    const analysis::grouping g = grouped(m, {"role"});
    CHECK(names_of(g) == std::vector<std::string>{"weight (weight, F32, 2-D)",
                                                  "weight (weight, F16, 2-D)",
                                                  "weight (weight, F32, 3-D)", "norm"});
    CHECK(g.groups[0].of->shape == tensor::shape{2, 16});
}

TEST_CASE("groups that mean nothing are refused") {
    tests::memory_model m;
    m.add("a.b", tensor::dtype::f32, {32}, std::vector<float>(32));
    CHECK_THROWS_AS(grouped(m, {"experts.*"}), base::error);
    CHECK_THROWS_AS(grouped(m, {"a.b"}), base::error);
    CHECK_THROWS_AS(grouped(m, {""}), base::error);
    CHECK_THROWS_AS(grouped(m, {"layer"}), base::error);
}

TEST_CASE("a group of experts has the figures of the stack of them") {
    tests::memory_model parts, stack;
    std::vector<float> all;
    for (int e = 0; e < 5; ++e) {
        const auto x = values_of(64 * 64, 7 + static_cast<unsigned>(e), e == 3 ? 100.0F : 1.0F);
        parts.add(expert(0, e), tensor::dtype::f32, {64, 64}, x);
        all.insert(all.end(), x.begin(), x.end());
    }
    stack.add("layers.0.experts", tensor::dtype::f32, {5, 64, 64}, all);
    analysis::analysis_request request;
    for (const char* r : {"mxfp4", "nvfp4", "mxfp8:block=4x4"}) {
        request.recipes.push_back(codec::parse_recipe(r));
    }
    request.histograms = true;
    request.decompose = true;
    const analysis::analysis alone = analysis::analyze(parts.all(), request, {});
    const analysis::analysis whole = analysis::analyze(stack.all(), request, {});
    request.groups = {"experts.*"};
    const analysis::analysis together = analysis::analyze(parts.all(), request, {});
    REQUIRE(together.results.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        const analysis::result r = together.results[i], w = whole.results[i];
        CAPTURE(r.under->name);
        REQUIRE(r.group);
        CHECK(r.group->members == 5);
        CHECK(r.elements == w.elements);
        CHECK(r.blocks == w.blocks);
        analysis::result worst = alone.results[i];
        for (std::size_t e = 1; e < 5; ++e) {
            const analysis::result other = alone.results[3 * e + i];
            if (other.nrmse > worst.nrmse) worst = other;
        }
        CHECK(r.group->worst_member == worst.of->tensor);
        CHECK(r.group->worst_nrmse == worst.nrmse);
        CHECK(r.group->worst_sqnr_db == worst.sqnr_db);
        if (i == 1) {  // NVFP4: a tensor scale for each expert
            CHECK(std::isnan(r.tensor_scale));
            continue;
        }
        CHECK(r.rmse == w.rmse);
        CHECK(r.sqnr_db == w.sqnr_db);
        CHECK(r.clamp_rate == w.clamp_rate);
        CHECK(r.squared_error == w.squared_error);
        CHECK(r.more == w.more);
    }
}

TEST_CASE("results of groups are read back") {
    tests::memory_model m;
    for (int e = 0; e < 3; ++e) {
        m.add(expert(1, e), tensor::dtype::f32, {4, 32}, values_of(128, static_cast<unsigned>(e)));
    }
    analysis::analysis_request request;
    request.recipes.push_back(codec::parse_recipe("mxfp4"));
    request.groups = {"experts.*"};
    const analysis::analysis a = analysis::analyze(m.all(), request, {});
    const report::record written = analysis::record_of(a.results.front());
    const analysis::result read = analysis::result_reader("x").read(written);
    REQUIRE(read.group);
    CHECK(read.group->members == 3);
    CHECK(analysis::record_of(read) == written);
}
