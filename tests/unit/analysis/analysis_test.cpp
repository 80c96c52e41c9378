// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/base/status.hpp"
#include "libmx/metrics/histograms.hpp"
#include "libmx/metrics/metrics.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx;
using report::find;

namespace {

void add(tests::memory_model& model, const char* name, const tensor::shape& shape,
         const std::vector<float>& values) {
    model.add(name, tensor::dtype::f32, shape, values);
}

std::vector<float> heavy_tailed(std::size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::student_t_distribution<float> t(2.0f);
    std::vector<float> x(n);
    for (float& v : x) v = t(random);
    return x;
}

std::vector<report::record> analyze(const tests::memory_model& model,
                                    const std::vector<std::string>& recipes, int threads) {
    analysis::analysis_request request;
    request.histograms = true;
    for (const std::string& r : recipes) request.recipes.push_back(codec::parse_recipe(r));
    engine::run_control control;
    control.threads = threads;
    analysis::analysis a = analysis::analyze(model.all(), request, control);
    const report::record_list records = analysis::records_of(a.results);
    return {records.begin(), records.end()};
}

bool is_null(const report::record& r, const char* name) {
    return std::holds_alternative<std::monostate>(*find(r, name));
}

double number(const report::record& r, const char* name) {
    const report::value& v = *find(r, name);
    if (const auto* n = std::get_if<std::int64_t>(&v)) return static_cast<double>(*n);
    return std::get<double>(v);
}

const std::vector<std::string> many{
    "mxfp4",
    "mxfp4:block=32x1",
    "mxfp4:block=128x128",
    "mxfp8:block=1x48",
    "mxfp8:scale=rceil,axis=flat",
    "mxint4:offset=fp16,block=1x16",
    "mxfp4:round=stochastic,seed=5",
    "mxfp6:block=7x5",
    "nvfp4",
    "nvfp4:four_over_six=mse,block=16x16",
    "nvfp4:dialect=te,round=stochastic,seed=2",
    "fp8_128x128",
    "mxfp8:dialect=systems-scaling",
};

}  // namespace

TEST_CASE("a tensor scale is that of the whole tensor, read once or twice") {
    tests::memory_model model;
    auto wide = heavy_tailed(300000, 6);
    wide[123456] = 5376.0f;  // 2 * 448 * 6
    wide[299999] = std::numeric_limits<float>::infinity();
    wide[7] = std::numeric_limits<float>::quiet_NaN();
    for (float& v : wide) {
        if (std::abs(v) > 5376.0f && std::isfinite(v)) v = 1;
    }
    add(model, "wide", {3, 100000}, wide);
    add(model, "small", {10, 10}, heavy_tailed(100, 7));
    add(model, "empty", {0, 4}, {});
    analysis::analysis_request request;
    request.recipes = {codec::parse_recipe("nvfp4"), codec::parse_recipe("mxfp4"),
                       codec::parse_recipe("nvfp4:dialect=te,block=32x1")};
    const auto run = [&](std::uint64_t kept) {
        engine::run_control control;
        control.threads = 3;
        control.kept_elements = kept;
        analysis::analysis a = analysis::analyze(model.all(), request, control);
        const report::record_list records = analysis::records_of(a.results);
        return std::vector<report::record>(records.begin(), records.end());
    };
    const auto at_once = run(1 << 24);
    REQUIRE(at_once.size() == 9);
    CHECK(number(at_once[0], "tensor_scale") == 2.0);
    CHECK(number(at_once[0], "nan") == 1);
    CHECK(number(at_once[0], "poisoned") == 30);
    CHECK(is_null(at_once[1], "tensor_scale"));
    CHECK(number(at_once[2], "tensor_scale") == 2.0);
    CHECK(number(at_once[6], "tensor_scale") == 1.0);
    for (const std::uint64_t kept : {std::uint64_t{0}, std::uint64_t{100}, std::uint64_t{300000}}) {
        CAPTURE(kept);
        auto again = run(kept);
        REQUIRE(again.size() == at_once.size());
        for (std::size_t i = 0; i < again.size(); ++i) {
            const bool two_level = i % 3 != 1;
            const double elements = number(again[i], "elements");
            const double passes = two_level && elements > static_cast<double>(kept) ? 2 : 1;
            CHECK(number(again[i], "passes") == passes);
            for (auto& [name, value] : again[i]) {
                if (name == "passes") value = std::int64_t{1};
            }
            CHECK(again[i] == at_once[i]);
        }
    }
}

TEST_CASE("figures do not depend on threads or on the other recipes of a run", "[slow]") {
    tests::memory_model model;
    add(model, "wide", {3, 150000}, heavy_tailed(450000, 1));
    add(model, "tall", {70000, 5}, heavy_tailed(350000, 2));
    add(model, "stack", {3, 130, 257}, heavy_tailed(std::size_t{3} * 130 * 257, 3));
    add(model, "vector", {1000}, heavy_tailed(1000, 4));
    add(model, "scalar", {}, {1.5f});
    const auto together = analyze(model, many, 1);
    REQUIRE(together.size() == 5 * many.size());
    CHECK(analyze(model, many, 2) == together);
    CHECK(analyze(model, many, 7) == together);
    for (std::size_t r = 0; r < many.size(); ++r) {
        const auto alone = analyze(model, {many[r]}, 2);
        for (std::size_t t = 0; t < alone.size(); ++t) {
            CHECK(alone[t] == together[t * many.size() + r]);
        }
    }
}

TEST_CASE("many small tensors are worked on in batches, and come out in order") {
    tests::memory_model model;
    for (int i = 0; i < 700; ++i) {
        add(model, ("t" + std::to_string(i)).c_str(), {3, 5}, heavy_tailed(15, 1));
    }
    // 700 tensors under 8 recipes are more than one batch; with histograms, more than twenty.
    const auto results = analyze(model, many, 3);
    REQUIRE(results.size() == 700 * many.size());
    bool in_order = true;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const std::string name = "t" + std::to_string(i / many.size());
        in_order = in_order && std::get<std::string>(*find(results[i], "tensor")) == name;
        if (many[i % many.size()].find("stochastic") != std::string::npos) continue;
        in_order = in_order && find(results[i], "rmse") != nullptr &&
                   *find(results[i], "rmse") == *find(results[i % many.size()], "rmse");
    }
    CHECK(in_order);
}

TEST_CASE("what is undefined is null, and exactness is said") {
    tests::memory_model model;
    add(model, "zeros", {64}, std::vector<float>(64, 0.0f));
    add(model, "empty", {0, 32}, {});
    add(model, "powers", {32}, std::vector<float>(32, 0.5f));
    std::vector<float> poisoned(64, 1.0f);
    poisoned[3] = NAN;
    poisoned[5] = INFINITY;
    add(model, "poisoned", {2, 32}, poisoned);
    const auto r = analyze(model, {"mxfp4"}, 1);

    CHECK(number(r[0], "rmse") == 0.0);
    CHECK(is_null(r[0], "nrmse"));
    CHECK(is_null(r[0], "sqnr_db"));
    CHECK(is_null(r[0], "gain"));
    CHECK(is_null(r[0], "cosine"));
    CHECK(is_null(r[0], "saturated_block_rate"));
    CHECK(number(r[0], "zero_blocks") == 2);
    CHECK(number(r[0], "underflow_rate") == 0.0);

    CHECK(is_null(r[1], "rmse"));
    CHECK(is_null(r[1], "overflow_rate"));
    CHECK(is_null(r[1], "bits_per_element"));
    CHECK(is_null(r[1], "exact"));

    CHECK(std::get<bool>(*find(r[2], "exact")));
    CHECK(is_null(r[2], "sqnr_db"));
    CHECK(number(r[2], "gain") == 1.0);
    CHECK(number(r[2], "bits_per_element") == 4.25);
    CHECK(number(r[2], "collapsed_block_rate") == 1.0);
    CHECK(number(r[2], "saturated_block_rate") == 0.0);

    CHECK(number(r[3], "nan") == 1);
    CHECK(number(r[3], "inf") == 1);
    CHECK(number(r[3], "poisoned") == 30);
    CHECK(number(r[3], "eligible_blocks") == 1);
    CHECK(number(r[3], "rmse") == 0.0);
}

TEST_CASE("a signal that is lost whole has 0 dB, without a sign") {
    tests::memory_model model;
    add(model, "w", {64}, std::vector<float>(64, 1e-5f));
    const auto r = analyze(model, {"nvfp4:scale=single-level"}, 1);
    CHECK(number(r[0], "underflow_rate") == 1);
    CHECK(number(r[0], "sqnr_db") == 0);
    CHECK_FALSE(std::signbit(number(r[0], "sqnr_db")));
}

TEST_CASE("with an offset, what becomes the offset does not become zero") {
    // Centre 1. x = 1 + 1/64 becomes 1; x = 2^-30 becomes 0; 0 stays 0.
    std::vector<float> x(32, 1.0f + 0x1p-6f);
    x[0] = 0.0f;
    x[1] = 2.0f;
    x[2] = 0x1p-30f;
    tests::memory_model model;
    add(model, "offset", {32}, x);
    std::vector<float> even(32, 0x1p-6f);  // centre 0: q = 0 is 0
    even[0] = -2.0f;
    even[1] = 2.0f;
    add(model, "centred", {32}, even);
    for (const char* recipe : {"mxint4:offset=fp16,scale=ceil", "mxfp4:offset=fp16"}) {
        CAPTURE(recipe);
        const auto r = analyze(model, {recipe}, 1);
        CHECK(number(r[0], "underflow_rate") == 1.0 / 32);
        CHECK(number(r[1], "underflow_rate") == 30.0 / 32);
        CHECK(number(r[0], "dead_block_rate") == 0.0);
    }
}

TEST_CASE("0.99 everywhere saturates under floor and is mended by rceil") {
    tests::memory_model model;
    add(model, "gamma", {32}, std::vector<float>(32, 0.99f));
    const auto r = analyze(model, {"mxfp8", "mxfp4", "mxfp8:scale=rceil"}, 1);
    CHECK(number(r[0], "saturated_block_rate") == 1.0);
    CHECK(number(r[0], "overflow_rate") == 1.0);
    CHECK(number(r[0], "rmse") == Approx(0.99 - 0.875).epsilon(1e-6));
    CHECK(number(r[1], "rmse") == Approx(0.99 - 0.75).epsilon(1e-6));
    CHECK(number(r[2], "overflow_rate") == 0.0);
    CHECK(number(r[2], "rmse") == Approx(1.0 - 0.99).epsilon(1e-6));
}

TEST_CASE("histograms account for every code and block") {
    tests::memory_model model;
    add(model, "w", {100, 77}, heavy_tailed(7700, 9));
    const auto r = analyze(model, {"mxfp4"}, 2).front();
    std::int64_t codes = 0;
    for (const report::value& n : std::get<report::list>(*find(r, "code_histogram"))) {
        codes += std::get<std::int64_t>(n);
    }
    CHECK(codes == 7700);
    std::int64_t blocks = 0;
    for (const auto& [code, n] : std::get<report::record>(*find(r, "scale_histogram"))) {
        blocks += std::get<std::int64_t>(n);
    }
    CHECK(blocks == 300);
    const double entropy = number(r, "code_entropy_bits");
    CHECK(entropy > 2.0);
    CHECK(entropy < 4.0);
}

TEST_CASE("spread bins hold min/max between their edges") {
    std::mt19937 random(3);
    const auto draw = [&] { return static_cast<std::uint32_t>(random()); };
    for (int i = 0; i < 20000; ++i) {
        const std::uint32_t a = draw() % 0x7f7fffffu + 1;
        const std::uint32_t b = i % 3 == 0 ? a + draw() % 40u : draw() % 0x7f7fffffu + 1;
        const std::uint32_t low = std::min(a, b);
        const std::uint32_t high = std::min(std::max(a, b), 0x7f7fffffu);
        const double ratio = static_cast<double>(base::float_from_bits(low)) /
                             static_cast<double>(base::float_from_bits(high));
        const int bin = metrics::spread_bin(low, high);
        REQUIRE(bin >= 0);
        REQUIRE(bin < metrics::spread_bins);
        REQUIRE(ratio <= metrics::spread_edge(bin));
        if (bin + 1 < metrics::spread_bins) REQUIRE(ratio > metrics::spread_edge(bin + 1));
    }
    // No pair of bits is outside of the histogram.
    for (const std::uint32_t low : {0u, 1u, 0x3f800000u, 0x7f800000u, 0x7fc00000u, ~0u}) {
        for (const std::uint32_t high : {0u, 1u, 0x3f800000u, 0x7f800000u, 0x7fc00000u, ~0u}) {
            const int bin = metrics::spread_bin(low, high);
            CHECK(bin >= 0);
            CHECK(bin < metrics::spread_bins);
        }
    }
}

TEST_CASE("what is not a number is left out with its reason") {
    tests::memory_model model;
    model.add("mask", tensor::dtype::boolean, {4}, std::vector<std::uint8_t>(4));
    add(model, "w", {4}, {1, 2, 3, 4});
    analysis::analysis_request request;
    request.recipes = {codec::parse_recipe("mxfp4"), codec::parse_recipe("mxfp4:axis=3")};
    const analysis::analysis a = analysis::analyze(model.all(), request, {});
    REQUIRE(a.results.size() == 1);
    REQUIRE(a.skipped.size() == 2);
    CHECK(a.skipped[0].tensor == "mask");
    CHECK(a.skipped[0].reason.find("BOOL") != std::string::npos);
    CHECK(a.skipped[1].recipe == "mxfp4:axis=3");
}

TEST_CASE("a raised flag stops a run") {
    tests::memory_model model;
    add(model, "w", {64}, std::vector<float>(64, 1.0f));
    analysis::analysis_request request;
    request.recipes = {codec::parse_recipe("mxfp4")};
    std::atomic<bool> cancel{true};
    engine::run_control control;
    control.cancel = &cancel;
    try {
        analysis::analyze(model.all(), request, control);
        FAIL("the run went on");
    } catch (const base::error& e) {
        CHECK(e.kind() == base::error_kind::cancelled);
    }
}

TEST_CASE("a tiny error next to a large exact value is not lost") {
    tests::memory_model model;
    std::vector<float> x(32, 1.0f);
    x[7] = 1e-25f;
    x[8] = 0x1p-149f;
    add(model, "w", {32}, x);
    const auto r = analyze(model, {"mxfp4"}, 1);
    CHECK(number(r[0], "rmse") == Approx(std::sqrt(1e-50 / 32)).epsilon(1e-6));
    CHECK_FALSE(std::get<bool>(*find(r[0], "exact")));
}
