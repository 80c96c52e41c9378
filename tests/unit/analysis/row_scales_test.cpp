// SPDX-License-Identifier: Apache-2.0
// outer=row: every row is quantized under the outer scale of its own largest magnitude, in one pass
// over the tensor, however long rows are and whatever backend does it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/io/writer.hpp"
#include "libmx/report/members.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/model_files.hpp"
#include "tests/memory_model.hpp"

using namespace mx;

namespace {

constexpr std::size_t rows = 7;
constexpr std::size_t cols = 9000;  // more than a segment, and a short block

// Rows whose maxima lie far apart; the fourth holds zeros, the fifth a NaN and an Inf.
std::vector<float> values() {
    std::vector<float> x(rows * cols);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / cols;
        const float size = std::ldexp(1.0f, static_cast<int>(row) * 9 - 30);
        x[i] = row == 3 ? 0.0f : size * std::sin(static_cast<float>(i % 977) * 0.37f);
    }
    x[4 * cols + 100] = std::numeric_limits<float>::quiet_NaN();
    x[4 * cols + 5000] = std::numeric_limits<float>::infinity();
    return x;
}

struct figures {
    double error2 = 0;
    std::uint64_t counted = 0;
    float least = std::numeric_limits<float>::infinity(), largest = 0;
};

figures by_rows(const std::vector<float>& x, const codec::recipe& r) {
    figures f;
    codec::block_params p = codec::params_of(r);
    std::vector<std::uint8_t> codes(16);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::span<const float> all(x.data() + row * cols, cols);
        float amax = 0;
        for (const float v : all) {
            if (std::isfinite(v)) amax = std::max(amax, std::abs(v));
        }
        p.tensor = codec::outer_scale(p.outer, amax);
        f.least = std::min(f.least, p.tensor.decode);
        f.largest = std::max(f.largest, p.tensor.decode);
        for (std::size_t c = 0; c < cols; c += 16) {
            const auto block = all.subspan(c, std::min<std::size_t>(16, cols - c));
            const codec::block_place place{0, 0, cols, static_cast<int>(block.size())};
            const auto s =
                codec::quantize_block(p, block, place, std::span(codes).first(block.size()));
            f.error2 += s.sum.error2;
            f.counted += s.count.elements - s.count.nan - s.count.inf - s.count.poisoned;
        }
    }
    return f;
}

}  // namespace

TEST_CASE("every row has its own outer scale, found without a pass that goes first") {
    const std::vector<float> x = values();
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {rows, cols}, x);
    for (const char* text :
         {"nvfp4:outer=row", "nvfp4:outer=row,dialect=te", "nvfp4:scale_format=ue5m3,outer=row",
          "nvfp4:four_over_six=mse,outer=row", "nvfp4:outer=row,dialect=alto"}) {
        const codec::recipe r = codec::parse_recipe(text);
        const figures wanted = by_rows(x, r);
        for (const char* backend : {"scalar", "best"}) {
            CAPTURE(text, backend);
            analysis::analysis_request request;
            request.recipes = {r, codec::parse_recipe("nvfp4")};
            engine::run_control control;
            if (backend == std::string_view("scalar"))
                control.backend = &codec::backend_named(backend);
            const analysis::analysis a = analysis::analyze(model.all(), request, control);
            const analysis::result& got = a.results[0];
            CHECK(got.rmse == Approx(std::sqrt(wanted.error2 / static_cast<double>(wanted.counted)))
                                  .epsilon(1e-12));
            CHECK(got.passes == 1);
            CHECK(std::isnan(got.tensor_scale));
            const report::record all = analysis::record_of(got);
            const auto* range = report::member<report::record>(all, "row_scale");
            REQUIRE(range != nullptr);
            CHECK(report::number_of(*range, "min") == double{wanted.least});
            CHECK(report::number_of(*range, "max") == double{wanted.largest});
            // A tensor scale is another thing.
            CHECK(got.rmse != a.results[1].rmse);
            const report::record other = analysis::record_of(a.results[1]);
            CHECK(report::find(other, "row_scale") == nullptr);
        }
    }
}

TEST_CASE("a given outer scale takes the place of the tensor's own, without a pass for it") {
    const std::vector<float> x = values();
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {rows, cols}, x);
    analysis::analysis_request request;
    request.recipes = {codec::parse_recipe("nvfp4"), codec::parse_recipe("nvfp4:outer=given:0.5"),
                       codec::parse_recipe("nvfp4:outer=given:2,dialect=te")};
    engine::run_control control;
    control.kept_elements = 0;
    const analysis::analysis a = analysis::analyze(model.all(), request, control);
    CHECK(a.results[0].passes == 2);
    CHECK(a.results[1].passes == 1);
    CHECK(a.results[1].tensor_scale == 0.5);
    CHECK(a.results[2].tensor_scale == 0.5);  // its reciprocal is what is stored
    CHECK(a.results[1].rmse > a.results[0].rmse);
}

TEST_CASE("a file gives outer scales by the names of tensors") {
    const std::vector<float> x = values();
    tests::memory_model model;
    for (const char* name : {"a", "b", "c"}) model.add(name, tensor::dtype::f32, {rows, cols}, x);
    const auto results = [&](const std::string& recipe) {
        analysis::analysis_request request;
        request.recipes = {codec::parse_recipe(recipe)};
        return analysis::analyze(model.all(), request, {});
    };
    const tests::temporary_file file(".safetensors");
    const auto write = [&](const std::vector<std::pair<std::string, std::vector<float>>>& arrays) {
        std::vector<io::planned_array> plan;
        for (const auto& [name, numbers] : arrays) {
            plan.push_back({name, tensor::dtype::f32, {numbers.size()}});
        }
        const auto out = io::create_safetensors(file.path(), plan, {});
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            out->write(i, 0, std::as_bytes(std::span(arrays[i].second)));
        }
        out->commit();
    };
    const std::string recipe = "nvfp4:outer=given:" + file.path();

    write({{"a", {0.5f}}, {"b.global_scale", {0.25f}}, {"other", {1.0f, 2.0f}}});
    const analysis::analysis a = results(recipe);
    REQUIRE(a.results.size() == 2);
    CHECK(a.results[0].tensor_scale == 0.5);
    CHECK(a.results[1].tensor_scale == 0.25);
    CHECK(a.results[0].rmse == results("nvfp4:outer=given:0.5").results[0].rmse);
    REQUIRE(a.skipped.size() == 1);
    CHECK(a.skipped[0].tensor == "c");
    CHECK(a.skipped[0].reason.find("no outer scale for it") != std::string::npos);

    write({{"k", {2.0f}}});
    CHECK(results(recipe).results.at(2).tensor_scale == 2.0);

    write({{"a", {0.5f, 1.0f}}});
    CHECK_THROWS_WITH(results(recipe), Catch::Matchers::Contains("holds 2 numbers"));
    for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
        write({{"a", {bad}}});
        CHECK_THROWS_WITH(results(recipe), Catch::Matchers::Contains("must be positive"));
    }
    CHECK_THROWS(results("nvfp4:outer=given:/no/such/file"));
    CHECK_THROWS_WITH(codec::refuse_scale_files(codec::parse_recipe(recipe)),
                      Catch::Matchers::Contains("here give a number"));
}
