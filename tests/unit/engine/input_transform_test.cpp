// SPDX-License-Identifier: Apache-2.0
// Compares biases, factors and transforms of an analysis with tensors of the prepared values.
#include "libmx/engine/input_transform.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/api/mx/mx.hpp"
#include "libmx/base/status.hpp"
#include "libmx/engine/geometry.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"
#include "tests/naive_rotation.hpp"

using namespace mx;
using analysis::analysis_request;
using report::find;

namespace {

using floats = std::vector<float>;

floats heavy_tailed(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::student_t_distribution<float> t(3.0f);
    floats x(n);
    for (float& v : x) v = t(random);
    return x;
}

analysis_request request_of(const std::vector<std::string>& recipes) {
    analysis_request request;
    request.histograms = true;
    for (const std::string& r : recipes) request.recipes.push_back(codec::parse_recipe(r));
    return request;
}

std::vector<report::record> run(const tests::memory_model& model, const analysis_request& request,
                                int threads = 2, std::uint64_t kept = std::uint64_t{1} << 24) {
    engine::run_control control;
    control.threads = threads;
    control.kept_elements = kept;
    analysis::analysis a = analysis::analyze(model.all(), request, control);
    CHECK(a.skipped.empty());
    const report::record_list records = records_of(a.results);
    return {records.begin(), records.end()};
}

// Members that must agree; those that name the result may differ.
report::record figures(const report::record& r) {
    report::record out;
    for (const auto& [name, value] : r) {
        const bool says_what = name == "tensor" || name == "recipe" || name == "phase" ||
                               name == "role" || name == "passes" ||
                               name == "spread_error";  // over the deviation before a rotation
        if (!says_what) out.emplace_back(name, value);
    }
    return out;
}

tests::memory_model holding(const std::string& name, const tensor::shape& shape, const floats& x) {
    tests::memory_model model;
    model.add(name, tensor::dtype::f32, shape, x);
    return model;
}

// x + bias, times factor, along the rows of a matrix: by the naive rotation.
floats by_hand(const floats& x, float bias, float factor, const transform::rotation& r,
               std::size_t cols) {
    floats out;
    for (const float v : x) {
        const float shifted = bias == 0 ? v : v + bias;
        out.push_back(shifted * factor);
    }
    if (r.what == transform::kind::none) return out;
    return tests::naive_rotation(r, out, 1, x.size() / cols, cols, false);
}

}  // namespace

TEST_CASE("biases, factors and transforms are those of a tensor that holds the prepared values") {
    const tensor::shape shape{150, 333};
    const floats x = heavy_tailed(150 * 333, 1);
    analysis_request request = request_of(
        {"mxfp4", "mxfp4:transform=hadamard", "nvfp4:transform=random-hadamard,transform_seed=3",
         "nvfp4", "mxfp8:block=16x16,transform=hadamard,transform_size=64",
         "mxfp4:round=stochastic,transform=hadamard"});
    request.norm_bias = 1;
    request.factors = {1.0f, 1.25f, 3.0f};
    // Small tensors are kept between the passes, or not.
    for (const std::uint64_t kept : {std::uint64_t{1} << 24, std::uint64_t{0}}) {
        const auto got = run(holding("a.norm.weight", shape, x), request, 3, kept);
        REQUIRE(got.size() == 18);
        for (std::size_t i = 0; i < got.size(); ++i) {
            const codec::recipe& r = request.recipes[i / 3];
            codec::recipe plain = r;
            plain.rotate = {};
            CAPTURE(codec::to_string(r), i % 3, kept);
            CHECK(std::get<std::int64_t>(*find(got[i], "phase")) ==
                  static_cast<std::int64_t>(i % 3));
            CHECK(std::get<std::string>(*find(got[i], "recipe")) == codec::to_string(r));
            const bool two = kept == 0 && codec::needs_tensor_facts(r);
            CHECK(std::get<std::int64_t>(*find(got[i], "passes")) == (two ? 2 : 1));
            const floats ready = by_hand(x, 1, request.factors[i % 3], r.rotate, 333);
            const auto want =
                run(holding("a.norm.weight", shape, ready), request_of({codec::to_string(plain)}));
            CHECK(figures(got[i]) == figures(want.front()));
            // Rotations keep sums of squares but not means: the deviation is that before them.
            if (r.rotate.what != transform::kind::none) continue;
            const auto spread = [](const report::record& of) {
                return std::get<double>(*find(of, "spread_error"));
            };
            CHECK(std::abs(spread(got[i]) / spread(want.front()) - 1) < 1e-6);
        }
    }
}

TEST_CASE("the bias is for norms, and one factor needs no index") {
    const floats x = heavy_tailed(1000, 2);
    analysis_request request = request_of({"mxfp8"});
    const auto plain = run(holding("mlp.up_proj.weight", {10, 100}, x), request);
    CHECK(find(plain.front(), "phase") == nullptr);
    request.norm_bias = 1;
    const auto biased = run(holding("mlp.up_proj.weight", {10, 100}, x), request);
    CHECK(figures(biased.front()) == figures(plain.front()));
    request.norm_bias = 0;
    request.factors = {2.0f};
    const auto doubled = run(holding("mlp.up_proj.weight", {10, 100}, x), request);
    CHECK(std::get<double>(*find(doubled.front(), "rmse")) ==
          2 * std::get<double>(*find(plain.front(), "rmse")));
}

TEST_CASE("prepared results depend on no thread, no panel and no other recipe") {
    const std::vector<std::string> recipes{
        "mxfp4:transform=hadamard",
        "mxfp4:block=32x1,transform=hadamard",
        "mxfp4:block=32x1,transform=random-hadamard,transform_size=128",
        "mxfp8:block=16x16,transform=hadamard",
        "mxfp4:axis=flat,transform=hadamard,transform_size=64",
        "nvfp4:axis=0,transform=random-hadamard,transform_seed=9",
        "mxfp6:axis=0,block=1x48,transform=hadamard,transform_size=128",
        "mxfp4:block=1x48,transform=hadamard",
        "mxfp4",
        "fp8_128x128:transform=hadamard"};
    tests::memory_model model;
    model.add("a", tensor::dtype::f32, {3, 301, 517}, heavy_tailed(3 * 301 * 517, 4));
    model.add("b", tensor::dtype::f32, {70001}, heavy_tailed(70001, 5));
    model.add("c", tensor::dtype::f32, {4001, 67}, heavy_tailed(4001 * 67, 6));
    std::vector<std::string> fitting = recipes;
    const auto want = run(model, request_of(fitting), 1);
    for (const int threads : {2, 7}) {
        const auto got = run(model, request_of(fitting), threads, threads == 7 ? 0 : 1 << 24);
        REQUIRE(got.size() == want.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(figures(got[i]) == figures(want[i]));
    }
    for (std::size_t r = 0; r < recipes.size(); ++r) {
        const auto alone = run(model, request_of({recipes[r]}), 2);
        for (std::size_t t = 0; t < 3; ++t) {
            CAPTURE(recipes[r], t);
            CHECK(figures(alone[t]) == figures(want[t * recipes.size() + r]));
        }
    }
}

TEST_CASE("the error of rotated values is that of the values rotated back") {
    const std::size_t rows = 256, cols = 1000;
    const floats x = heavy_tailed(rows * cols, 8);
    for (const char* text :
         {"mxfp4:transform=hadamard", "mxfp8:transform=random-hadamard",
          "mxfp4:transform=hadamard,transform_size=128", "mxint8:block=32x1,transform=hadamard"}) {
        CAPTURE(text);
        const codec::recipe r = codec::parse_recipe(text);
        const floats d = fake_quantize(view(x, rows, cols), r);
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double e = static_cast<double>(d[i]) - static_cast<double>(x[i]);
            sum += e * e;
        }
        const double back = std::sqrt(sum / static_cast<double>(x.size()));
        const auto got = run(holding("w", {rows, cols}, x), request_of({text}));
        CHECK(std::get<double>(*find(got.front(), "rmse")) == Approx(back).epsilon(1e-5));
    }
}

TEST_CASE("panels keep rotated groups whole, or the tensor is left out") {
    const auto units = [](const char* text, const tensor::shape& shape) {
        std::string reason;
        const auto g = engine::lay_out(shape, codec::parse_recipe(text), reason);
        REQUIRE(g);
        const engine::panel_plan plan(g->grid.over, std::span(&g->grid, 1));
        bool whole = true;
        for (std::uint64_t i = 0; i < plan.count(); ++i) {
            const engine::panel p = plan.at(i);
            const bool ends_row = p.col + p.cols == g->grid.over.cols;
            const bool ends_col = p.row + p.rows == g->grid.over.rows;
            whole = whole && p.col % g->grid.joint_cols == 0 && p.row % g->grid.joint_rows == 0 &&
                    (ends_row || p.cols % g->grid.joint_cols == 0) &&
                    (ends_col || p.rows % g->grid.joint_rows == 0);
        }
        CHECK(whole);
        return std::pair(g->grid.joint_rows, g->grid.joint_cols);
    };
    using pair = std::pair<std::uint64_t, std::uint64_t>;
    CHECK(units("mxfp4", {5, 700000}) == pair(1, 1));
    CHECK(units("mxfp4:block=1x48,transform=hadamard,transform_size=128", {5, 700000}) ==
          pair(1, 128));
    CHECK(units("mxfp4:block=32x1,transform=hadamard", {70001, 50}) == pair(32, 1));
    CHECK(units("mxfp4:block=3x1,transform=hadamard,transform_size=64", {70001, 50}) ==
          pair(64, 1));
    CHECK(units("mxfp4:axis=0,transform=hadamard", {70001, 50}) == pair(32, 1));
    CHECK(units("mxfp4:axis=1,transform=hadamard", {9, 50}) == pair(1, 32));
    CHECK(units("mxfp4:block=4x4,transform=hadamard", {9, 50}) == pair(1, 32));
    CHECK(units("mxfp4:axis=flat,transform=hadamard", {9, 700, 50}) == pair(1, 32));
    std::string reason;
    CHECK_FALSE(engine::lay_out(
        {std::uint64_t{1} << 40},
        codec::parse_recipe("mxfp4:block=1x999999,transform=hadamard,transform_size=128"), reason));
    CHECK(reason.find("power of two") != std::string::npos);
}

TEST_CASE("bytes are compared under one transform") {
    const floats x = heavy_tailed(64 * 96, 3);
    const auto model = holding("w", {64, 96}, x);
    const auto compare = [](const tests::memory_model& m, const std::vector<std::string>& texts) {
        return rosetta::compare_bytes(m.all(), request_of(texts).recipes, {});
    };
    const auto got =
        compare(model, {"nvfp4:transform=hadamard", "nvfp4:dialect=te,transform=hadamard"});
    const transform::rotation r{transform::kind::hadamard, 16, 0, {}};
    const auto want =
        compare(holding("w", {64, 96}, by_hand(x, 0, 1, r, 96)), {"nvfp4", "nvfp4:dialect=te"});
    CHECK(got.total.pairs[0].scales_differ == want.total.pairs[0].scales_differ);
    CHECK(got.total.pairs[0].codes_differ == want.total.pairs[0].codes_differ);
    CHECK(got.total.pairs[0].a_read_by_b.own.value() ==
          want.total.pairs[0].a_read_by_b.own.value());
    CHECK_THROWS_WITH(compare(model, {"mxfp4", "mxfp4:transform=hadamard"}),
                      Catch::Matchers::Contains("one transform"));
}
