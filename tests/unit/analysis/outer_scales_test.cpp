// SPDX-License-Identifier: Apache-2.0
// outer: rows, columns and tiles are quantized under the outer scales of their own largest
// magnitudes, in one pass over the tensor, for any size and any backend.
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

// Rows with very different maxima; the fourth contains zeros, the fifth a NaN and an Inf.
std::vector<float> values(std::size_t rows, std::size_t cols) {
    std::vector<float> x(rows * cols);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t row = i / cols;
        const float size = std::ldexp(1.0f, static_cast<int>(row % 7) * 9 - 30);
        x[i] = row == 3 ? 0.0f : size * std::sin(static_cast<float>(i % 977) * 0.37f);
    }
    x[4 * cols + cols / 9] = std::numeric_limits<float>::quiet_NaN();
    x[4 * cols + cols / 2] = std::numeric_limits<float>::infinity();
    return x;
}

struct figures {
    block::exact_totals sums;
    std::uint64_t counted = 0;
    float least = std::numeric_limits<float>::infinity(), largest = 0;
};

// A matrix whose areas of tall x wide have an outer scale each, block by block.
class area_by_area {
  public:
    area_by_area(const std::vector<float>& x, std::size_t rows, std::size_t cols,
                 const codec::recipe& r, std::size_t tall, std::size_t wide)
        : x_(x), rows_(rows), cols_(cols), block_(r.block), p_(codec::params_of(r)) {
        for (std::size_t row = 0; row < rows; row += tall) {
            for (std::size_t col = 0; col < cols; col += wide) {
                area(row, std::min(row + tall, rows), col, std::min(col + wide, cols));
            }
        }
    }

    figures found;

  private:
    void area(std::size_t top, std::size_t bottom, std::size_t left, std::size_t right) {
        float amax = 0;
        for (const float v : part(top, bottom, left, right)) {
            if (std::isfinite(v)) amax = std::max(amax, std::abs(v));
        }
        p_.tensor = codec::outer_scale(p_.outer, amax);
        found.least = std::min(found.least, p_.tensor.decode);
        found.largest = std::max(found.largest, p_.tensor.decode);
        const auto tall = static_cast<std::size_t>(block_.rows);
        const auto wide = static_cast<std::size_t>(block_.cols);
        for (std::size_t row = top; row < bottom; row += tall) {
            for (std::size_t col = left; col < right; col += wide) {
                const std::size_t end = std::min(col + wide, right);
                const auto x = part(row, std::min(row + tall, bottom), col, end);
                std::vector<std::uint8_t> codes(x.size());
                const codec::block_place place{0, row * cols_ + col, cols_,
                                               static_cast<int>(end - col)};
                const auto s = codec::quantize_block(p_, x, place, codes, {}, &found.sums);
                found.counted += s.count.elements - s.count.nan - s.count.inf - s.count.poisoned;
            }
        }
    }

    std::vector<float> part(std::size_t top, std::size_t bottom, std::size_t left,
                            std::size_t right) const {
        std::vector<float> out;
        for (std::size_t row = top; row < bottom; ++row) {
            for (std::size_t col = left; col < right; ++col) out.push_back(x_[row * cols_ + col]);
        }
        return out;
    }

    const std::vector<float>& x_;
    std::size_t rows_, cols_;
    codec::block_shape block_;
    codec::block_params p_;
};

constexpr std::size_t whole = 1 << 20;

struct example {
    const char* recipe;
    std::size_t tall, wide;  // of an area
};

constexpr example examples[] = {{"nvfp4:outer=row", 1, whole},
                                {"nvfp4:outer=row,dialect=te", 1, whole},
                                {"nvfp4:scale_format=ue5m3,outer=row", 1, whole},
                                {"nvfp4:four_over_six=mse,outer=row", 1, whole},
                                {"nvfp4:four_over_six=mse,outer=row,dialect=te", 1, whole},
                                {"nvfp4:outer=row,dialect=alto", 1, whole},
                                {"nvfp4:scale=search,outer=row", 1, whole},
                                {"nvfp4:scale=search,search=mae,reach=3,outer=1x128", 1, 128},
                                {"nvfp4:outer=col,block=16x1", whole, 1},
                                {"nvfp4:outer=col,block=16x1,dialect=te", whole, 1},
                                {"nvfp4:outer=1x128", 1, 128},
                                {"nvfp4:outer=128x128", 128, 128},
                                {"nvfp4:outer=32x48,block=16x16", 32, 48},
                                {"amdfp4:outer=16x64,dialect=alto", 16, 64}};

}  // namespace

TEST_CASE("rows, columns and tiles have outer scales of their own, found without a pass before") {
    // Rows longer and much shorter than a segment, short blocks, and a stack of matrices.
    for (const tensor::shape& shape : {tensor::shape{7, 9000}, {64, 64}, {300, 40}, {3, 50, 72}}) {
        const std::size_t cols = shape.back(), each = shape[shape.size() - 2];
        const std::size_t rows = each * (shape.size() == 3 ? shape[0] : 1);
        const std::vector<float> x = values(rows, cols);
        tests::memory_model model;
        model.add("w", tensor::dtype::f32, shape, x);
        for (const example& e : examples) {
            const codec::recipe r = codec::parse_recipe(e.recipe);
            figures wanted;
            for (std::size_t first = 0; first < rows; first += each) {
                const std::vector<float> one(x.begin() + static_cast<long>(first * cols),
                                             x.begin() + static_cast<long>((first + each) * cols));
                const figures f = area_by_area(one, each, cols, r, e.tall, e.wide).found;
                wanted.sums.merge(f.sums);
                wanted.counted += f.counted;
                wanted.least = std::min(wanted.least, f.least);
                wanted.largest = std::max(wanted.largest, f.largest);
            }
            for (const char* backend : {"scalar", "best"}) {
                CAPTURE(tensor::to_string(shape), e.recipe, backend);
                analysis::analysis_request request;
                request.recipes = {r, codec::parse_recipe("nvfp4")};
                engine::run_control control;
                if (backend == std::string_view("scalar"))
                    control.backend = &codec::backend_named(backend);
                const analysis::analysis a = analysis::analyze(model.all(), request, control);
                const analysis::result& got = a.results[0];
                CHECK(got.rmse == std::sqrt(wanted.sums.error2().value() /
                                            static_cast<double>(wanted.counted)));
                CHECK(got.passes == 1);
                CHECK(std::isnan(got.tensor_scale));
                const report::record all = analysis::record_of(got);
                const auto* range = report::member<report::record>(all, "outer_scale");
                REQUIRE(range != nullptr);
                CHECK(report::number_of(*range, "min") == double{wanted.least});
                CHECK(report::number_of(*range, "max") == double{wanted.largest});
                // A tensor scale is another thing, unless one tile is all of it.
                if (wanted.least != wanted.largest) CHECK(got.rmse != a.results[1].rmse);
                const report::record other = analysis::record_of(a.results[1]);
                CHECK(report::find(other, "outer_scale") == nullptr);
            }
        }
    }
}

TEST_CASE("a given outer scale takes the place of the tensor's own, without a pass for it") {
    const std::vector<float> x = values(7, 9000);
    tests::memory_model model;
    model.add("w", tensor::dtype::f32, {7, 9000}, x);
    analysis::analysis_request request;
    request.recipes = {codec::parse_recipe("nvfp4"), codec::parse_recipe("nvfp4:outer=given:0.5"),
                       codec::parse_recipe("nvfp4:outer=given:2,dialect=te")};
    engine::run_control control;
    control.kept_elements = 0;
    const analysis::analysis a = analysis::analyze(model.all(), request, control);
    CHECK(a.results[0].passes == 2);
    CHECK(a.results[1].passes == 1);
    CHECK(a.results[1].tensor_scale == 0.5);
    CHECK(a.results[2].tensor_scale == 0.5);  // its reciprocal is stored
    CHECK(a.results[1].rmse > a.results[0].rmse);
}

TEST_CASE("a file gives outer scales by the names of tensors") {
    const std::vector<float> x = values(7, 9000);
    tests::memory_model model;
    for (const char* name : {"a", "b", "c"}) model.add(name, tensor::dtype::f32, {7, 9000}, x);
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

    // As in a quantized checkpoint, which has codes and block scales under the other names.
    write({{"a", {1.0f, 2.0f}},
           {"a_scale", {3.0f, 4.0f}},
           {"a_scale_2", {0.5f}},
           {"b_scale", {2.0f}},
           {"b_global_scale", {0.25f}},
           {"c", {1.0f, 2.0f}},
           {"c_scale", {0.125f}}});
    const analysis::analysis published = results(recipe);
    REQUIRE(published.results.size() == 3);
    CHECK(published.results[0].tensor_scale == 0.5);
    CHECK(published.results[1].tensor_scale == 0.25);
    CHECK(published.results[2].tensor_scale == 0.125);

    write({{"k", {2.0f}}});
    const analysis::analysis of_three = results(recipe);
    REQUIRE(of_three.results.size() == 3);
    CHECK(of_three.results[2].tensor_scale == 2.0);

    write({{"a", {0.5f, 1.0f}}});
    CHECK_THROWS_WITH(results(recipe), Catch::Matchers::Contains("has 2 numbers"));
    for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
        write({{"a", {bad}}});
        CHECK_THROWS_WITH(results(recipe), Catch::Matchers::Contains("must be positive"));
    }
    CHECK_THROWS(results("nvfp4:outer=given:/no/such/file"));
    CHECK_THROWS_WITH(codec::refuse_scale_files(codec::parse_recipe(recipe)),
                      Catch::Matchers::Contains("here give a number"));
}
