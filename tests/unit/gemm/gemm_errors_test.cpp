// SPDX-License-Identifier: Apache-2.0
// Operands of products and the figures of their errors: against values worked out by hand and
// against a product in double.
#include <cmath>
#include <limits>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/bench/normal_values.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand_formats.hpp"
#include "libmx/studies/products/conversions.hpp"
#include "libmx/studies/products/gemm_study.hpp"
#include "libmx/studies/products/operand_forms.hpp"
#include "libmx/studies/products/products.hpp"
#include "libmx/studies/products/quantized_operand.hpp"
#include "mx/mx.hpp"
#include "tests/catch.hpp"
#include "tests/memory_model.hpp"

using namespace mx::bench;
using namespace mx::products;

namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

constexpr float infinite = std::numeric_limits<float>::infinity();

// Nearly normal values, another part of them for every name.
matrix normal(const std::string& name, std::size_t rows, std::size_t cols, std::size_t skip) {
    matrix m;
    m.name = name;
    m.rows = rows;
    m.cols = cols;
    m.shape = {rows, cols};
    std::vector<float> values(skip + rows * cols);
    fill_normal(mx::tensor::dtype::f32, std::as_writable_bytes(std::span(values)));
    m.values.assign(values.begin() + static_cast<std::ptrdiff_t>(skip), values.end());
    return m;
}

// Row m of A and row n of B, as operands are stored in memory, in double.
double dot(const std::vector<float>& a, const std::vector<float>& b, std::size_t m, std::size_t n,
           std::size_t k) {
    double sum = 0;
    for (std::size_t i = 0; i < k; ++i) sum += double{a[m * k + i]} * double{b[n * k + i]};
    return sum;
}

quantized_operand quantized(const matrix& m, reduction over, const char* recipe) {
    const operand_recipe r = parse_operand_recipe(recipe);
    return quantize_operand(m, over, r, r.rotation(), {});
}

std::string refusal(const char* recipe) {
    try {
        parse_operand_recipe(recipe);
    } catch (const mx::base::error& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("errors of values are what they are by hand", "[gemm]") {
    const std::vector<float> x{1, 2, -4, 0, 8};
    const std::vector<float> d{1, 2.5, -4, -0.0f, 6};
    const value_errors e = compare_values(x, d);
    CHECK(e.elements == 5);
    CHECK(e.differing == 2);
    CHECK(e.max_abs == 2);
    CHECK(*e.rmse() == Approx(std::sqrt(4.25 / 5)));
    CHECK(*e.nrmse() == Approx(std::sqrt(4.25 / 85)));
    CHECK(*e.sqnr_db() == Approx(10 * std::log10(85 / 4.25)));
    CHECK(*e.mean_error() == Approx(-1.5 / 5));
    CHECK(*e.gain() == Approx((1 + 5 + 16 + 48) / 85.0));
    CHECK(*e.cosine() == Approx(70 / std::sqrt(85.0 * (1 + 6.25 + 16 + 36))));
    CHECK(*e.bias_share() == Approx(15.0 * 15.0 / 85 / 4.25));
    CHECK(e.max_ulp == ulp_distance(8, 6));
    CHECK(e.ulps[0] == 3);
}

TEST_CASE("a common factor is all bias, noise of no direction is none", "[gemm]") {
    const std::vector<float> x{1, -2, 3, -4};
    const std::vector<float> shrunk{0.5f, -1, 1.5f, -2};
    CHECK(*compare_values(x, shrunk).bias_share() == Approx(1));
    CHECK(*compare_values(x, shrunk).gain() == Approx(0.5));
    const std::vector<float> turned{3, -1, 3, -4};  // the error (2, 1, 0, 0) is orthogonal to x
    CHECK(*compare_values(x, turned).bias_share() == 0);
    CHECK(*compare_values(x, turned).gain() == 1);
}

TEST_CASE("ulps count float32 numbers, across zero and binades", "[gemm]") {
    CHECK(ulp_distance(1, std::nextafter(1.0f, 2.0f)) == 1);
    CHECK(ulp_distance(std::nextafter(1.0f, 0.0f), std::nextafter(1.0f, 2.0f)) == 2);
    CHECK(ulp_distance(1, 2) == 1u << 23);
    CHECK(ulp_distance(0.0f, -0.0f) == 0);
    CHECK(ulp_distance(0x1p-149f, -0x1p-149f) == 2);
    const float most = std::numeric_limits<float>::max();
    const value_errors e = compare_values(std::vector<float>{most}, std::vector<float>{-most});
    CHECK(e.max_ulp == 2 * std::uint64_t{0x7f7fffff});
    CHECK(e.ulps.back() == 1);
}

TEST_CASE("what is not finite is counted and left out", "[gemm]") {
    const std::vector<float> x{1, infinite, 3, NAN};
    const std::vector<float> d{1, 2, infinite, NAN};
    const value_errors e = compare_values(x, d);
    CHECK(e.non_finite == 3);
    CHECK(e.counted() == 1);
    CHECK(*e.rmse() == 0);
    CHECK_FALSE(e.sqnr_db().has_value());
    CHECK_FALSE(compare_values(std::vector<float>{0}, std::vector<float>{1}).nrmse().has_value());
}

TEST_CASE("values become the nearest of the wider formats", "[gemm]") {
    std::vector<float> x{1 + 0x1p-8f, 1 + 0x1p-8f + 0x1p-20f, 65519.9f, 65520, -1e9f, 0x1p-25f, 3};
    std::vector<float> bf16 = x, f16 = x, tf32 = x;
    CHECK(mx::format::round_to_wide("bf16", bf16) == 5);
    CHECK(bf16[0] == 1);
    CHECK(bf16[1] == 1 + 0x1p-7f);
    CHECK(mx::format::round_to_wide("f16", f16) == 5);
    CHECK(f16[0] == 1 + 0x1p-8f);
    CHECK(f16[2] == 65504);
    CHECK(f16[3] == infinite);
    CHECK(f16[4] == -infinite);
    CHECK(f16[5] == 0);
    CHECK(mx::format::round_to_wide("tf32", tf32) == 4);
    CHECK(tf32[1] == 1 + 0x1p-8f);
    std::vector<float> nan{NAN};
    for (const char* name : {"bf16", "f16", "tf32"}) {
        CHECK(mx::format::round_to_wide(name, nan) == 0);
        CHECK(std::isnan(nan[0]));
    }
    CHECK(values_operand("f16", nan, 1, 1).codes[0] == 0x7fff);
    CHECK(values_operand("bf16", std::vector<float>{1}, 1, 1).codes[0] == 0x3f80);
}

TEST_CASE("blocks lie along the axis that is summed over, on either axis", "[gemm]") {
    const matrix m = normal("w", 70, 40, 0);
    matrix turned = m;
    turned.values = reduction_last(m.values, m.rows, m.cols, reduction::first);
    std::swap(turned.rows, turned.cols);
    const quantized_operand down = quantized(m, reduction::first, "mxfp4");
    const quantized_operand across = quantized(turned, reduction::last, "mxfp4");
    REQUIRE(down.rows == 40);
    REQUIRE(down.depth == 70);
    CHECK(down.coded.scales.size() == 40 * 3);
    CHECK(down.coded.codes == across.coded.codes);
    CHECK(down.coded.scales == across.coded.scales);
    CHECK(down.values == across.values);
    CHECK(values_as_stored(down, reduction::first) ==
          reduction_last(across.values, 40, 70, reduction::first));
    CHECK(quantized(m, reduction::last, "mxfp4").values != m.values);
}

TEST_CASE("codes, scales and values of an operand say the same", "[gemm]") {
    const matrix m = normal("w", 5, 48, 0);
    for (const char* recipe : {"mxfp8", "mxfp6_e3m2", "mxfp4", "mxfp4:block=1x16", "nvfp4"}) {
        const quantized_operand q = quantized(m, reduction::last, recipe);
        INFO(recipe);
        REQUIRE(q.coded.format != nullptr);
        const auto* element = mx::format::find_element_format(q.coded.format->name);
        const auto* scale = q.recipe.blocks->scale_format;
        const std::size_t per_row = (48 + q.coded.scale_block - 1) / q.coded.scale_block;
        for (std::size_t i = 0; i < q.values.size(); ++i) {
            const std::size_t block = i / 48 * per_row + i % 48 / q.coded.scale_block;
            const double s = double{mx::format::decode_scale(*scale, q.coded.scales[block])};
            const double value = double{mx::format::decode(*element, q.coded.codes[i])} * s *
                                 double{q.coded.tensor_scale};
            REQUIRE(q.values[i] == static_cast<float>(value));
        }
    }
    // No unit reads these directly.
    for (const char* recipe :
         {"mxint8", "mxfp4:block=1x64", "mxfp8:block=4x4", "mxint4:offset=fp16"}) {
        CHECK(quantized(m, reduction::last, recipe).coded.format == nullptr);
    }
}

TEST_CASE("FP8 without blocks is cast, or scaled by the tensor's maximum", "[gemm]") {
    matrix m = normal("w", 2, 8, 0);
    m.values[3] = 1000;
    const quantized_operand cast = quantized(m, reduction::last, "e4m3");
    CHECK(cast.values[3] == 448);
    CHECK(cast.coded.tensor_scale == 1);
    const quantized_operand scaled = quantized(m, reduction::last, "e4m3:scale=tensor");
    CHECK(scaled.coded.tensor_scale == 1000.0f / 448.0f);
    CHECK(scaled.values[3] == Approx(1000));
}

TEST_CASE("recipes that a product has no use for are refused", "[gemm]") {
    CHECK(has(refusal("mxfp4:axis=0"), "leave axis out"));
    CHECK(has(refusal("mxfp8:dialect=systems-scaling,scale=floor-bump"), "inside a block"));
    CHECK(has(refusal("bf61"), "did you mean 'bf16'"));
    CHECK(has(refusal("bf16:scale=tensor"), "takes no keys"));
    CHECK(has(refusal("e4m3:scale=even"), "scale=tensor"));
    CHECK(to_string(parse_operand_recipe("none")) == "f32");
    CHECK(to_string(parse_operand_recipe("e5m2:scale=tensor")) == "e5m2:scale=tensor");
    CHECK(to_string(parse_operand_recipe("fp8_1x128:block=1x1048576")) == "e4m3:scale=channel");
    CHECK(to_string(parse_operand_recipe("int8:round=zero,scale=channel")) ==
          "int8:scale=channel,round=zero");
    CHECK(to_string(with_transform(parse_operand_recipe("mxfp4"), "hadamard", 64)) ==
          "mxfp4:transform=hadamard,transform_size=64");
    CHECK_THROWS_AS(common_rotation(parse_operand_recipe("mxfp4:transform=hadamard"),
                                    parse_operand_recipe("mxfp4")),
                    mx::base::error);
}

TEST_CASE("columns run across the axis that is summed over, and have no codes for models",
          "[gemm]") {
    const matrix m = normal("w", 44, 52, 0);
    const auto stored = [&](reduction over, const char* recipe) {
        return values_as_stored(quantized(m, over, recipe), over);
    };
    CHECK(stored(reduction::last, "mxfp4:block=16x1") ==
          stored(reduction::first, "mxfp4:block=1x16"));
    CHECK(stored(reduction::first, "mxfp4:block=16x1") ==
          stored(reduction::last, "mxfp4:block=1x16"));
    CHECK(stored(reduction::last, "mxfp4:block=16x1") !=
          stored(reduction::last, "mxfp4:block=1x16"));
    CHECK(quantized(m, reduction::last, "mxfp4:block=32x1").coded.format == nullptr);
    CHECK(quantized(m, reduction::last, "mxfp4").coded.format != nullptr);
}

TEST_CASE("models get what they take, and what fits is named", "[gemm]") {
    const matrix m = normal("w", 4, 64, 0);
    const auto of = [&](const char* recipe) { return quantized(m, reduction::last, recipe); };
    const quantized_operand fp4 = of("mxfp4"), fp8 = of("mxfp8"), nv = of("nvfp4"),
                            bf16 = of("bf16"), int8 = of("mxint8"), f32 = of("none"),
                            e4m3 = of("e4m3");
    CHECK(native_model(fp4, fp4).name == "sm100.mxf4");
    CHECK(native_model(nv, nv).name == "sm100.mxf4nvf4");
    CHECK(native_model(fp8, fp4).name == "sm100.mxf8f6f4");
    CHECK(native_model(bf16, bf16).name == "sm100.f16");
    CHECK(native_model(e4m3, e4m3).name == "sm100.f8f6f4");
    CHECK(native_model(int8, fp4).name == "bf16.fma");
    CHECK(native_model(f32, f32).name == "fp32.fma");
    const form_pair codes = forms_for(native_model(fp8, fp4), fp8, fp4);
    CHECK(codes.first.words == "e4m3 codes, e8m0 per 32");
    CHECK(codes.first.inexact == 0);
    const form_pair values = forms_for(mx::gemm::parse_accumulator("sm100.f16"), int8, f32);
    CHECK(values.first.words == "bf16 values");
    CHECK(values.first.inexact == 0);  // 8 bits of an integer fit
    CHECK(values.second.inexact > 0);
    try {
        forms_for(mx::gemm::parse_accumulator("sm100.mxf4"), fp8, fp8);
        FAIL("no error");
    } catch (const mx::base::error& e) {
        CHECK(has(e.what(), "sm100.mxf8f6f4"));
    }
}

TEST_CASE("outer scales of rows are applied to the sums as tensor scales are", "[gemm]") {
    // Rows of very different sizes, one of them zeros; incomplete blocks.
    matrix a = normal("a", 5, 72, 0), b = normal("b", 4, 72, 360);
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        a.values[i] = i / 72 == 2 ? 0 : std::ldexp(a.values[i], static_cast<int>(i / 72) * 9 - 20);
    }
    const auto row_of = [](const matrix& m, std::size_t row) {
        matrix one = m;
        one.rows = 1;
        one.shape = {1, m.cols};
        const auto from = m.values.begin() + static_cast<std::ptrdiff_t>(row * m.cols);
        one.values.assign(from, from + static_cast<std::ptrdiff_t>(m.cols));
        return one;
    };
    const mx::engine::run_control control;
    product_runner runner(control, "", 0);
    for (const char* name : {"sm100.mxf4nvf4", "exact", "fp32.fma"}) {
        const auto model = mx::gemm::parse_accumulator(name);
        const auto product = [&](const quantized_operand& x, const quantized_operand& y) {
            const form_pair f = forms_for(model, x, y);
            mx::gemm::arrangement how;
            how.alpha = 0.7f;
            return runner.multiply(f.first.operand, f.second.operand, {}, model, how);
        };
        for (const char* dialect : {"", ",dialect=te"}) {
            CAPTURE(name, dialect);
            const auto of = [&](const matrix& m, std::string outer) {
                return quantized(m, reduction::last, ("nvfp4:outer=" + outer + dialect).c_str());
            };
            const quantized_operand rows = of(a, "row"), tensor = of(b, "tensor");
            CHECK(rows.coded.row_scales.size() == 5);
            CHECK(has(forms_for(model, rows, tensor).first.words, "row scales") ==
                  takes_codes(model, rows, tensor));
            const std::vector<float> d = product(rows, tensor), e = product(tensor, rows);
            // All of k is in one tile.
            CHECK(product(of(a, "1x128"), tensor) == d);
            for (std::size_t i = 0; i < 5; ++i) {
                const quantized_operand one = of(row_of(a, i), "tensor");
                const std::vector<float> own = product(one, tensor), turned = product(tensor, one);
                for (std::size_t j = 0; j < 4; ++j) {
                    CHECK(mx::base::bits_of(d[i * 4 + j]) == mx::base::bits_of(own[j]));
                    CHECK(mx::base::bits_of(e[j * 5 + i]) == mx::base::bits_of(turned[j]));
                }
            }
        }
    }
    const quantized_operand q = quantized(a, reduction::last, "nvfp4:outer=row");
    CHECK(first_of(q.coded, 32).row_scales == q.coded.row_scales);
    mx::gemm::operand short_of = q.coded;
    short_of.row_scales.pop_back();
    CHECK_THROWS_AS(runner.multiply(short_of, q.coded, {}, native_model(q, q), {}),
                    mx::base::error);
}

TEST_CASE("rows with outer scales run along the axis that is summed over", "[gemm]") {
    matrix m = normal("w", 70, 40, 0);
    for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] *= static_cast<float>(1 + i % 40);
    matrix turned = m;
    turned.values = reduction_last(m.values, m.rows, m.cols, reduction::first);
    std::swap(turned.rows, turned.cols);
    for (const char* recipe : {"nvfp4:outer=row", "nvfp4:outer=16x32", "nvfp4:outer=8x80",
                               "nvfp4:outer=col,block=16x1"}) {
        CAPTURE(recipe);
        const quantized_operand down = quantized(m, reduction::first, recipe);
        const quantized_operand across = quantized(turned, reduction::last, recipe);
        CHECK(down.values == across.values);
        CHECK(down.coded.codes == across.coded.codes);
        CHECK(down.coded.row_scales == across.coded.row_scales);
        CHECK(down.scaled_along_k == across.scaled_along_k);
        // The values of mx quantize.
        const mx::view in(turned.values, 40, 70);
        CHECK(across.values == mx::fake_quantize(in, mx::parse_recipe(recipe)));
    }
    CHECK(quantized(m, reduction::first, "nvfp4:outer=8x80").coded.row_scales.size() == 40);
    // 16x16 blocks are those of the stored matrix, and so are their tiles.
    const char* const tiles = "nvfp4:outer=32x16,block=16x16";
    CHECK(values_as_stored(quantized(m, reduction::first, tiles), reduction::first) ==
          mx::fake_quantize(mx::view(m.values, 70, 40), mx::parse_recipe(tiles)));
}

TEST_CASE("models of codes refuse outer scales that differ along k; others take the values",
          "[gemm]") {
    const matrix m = normal("w", 6, 64, 0);
    const auto of = [&](const char* recipe) { return quantized(m, reduction::last, recipe); };
    const quantized_operand row = of("nvfp4:outer=row");
    const auto nvf4 = mx::gemm::parse_accumulator("sm100.mxf4nvf4");
    CHECK(native_model(row, row).name == "sm100.mxf4nvf4");
    for (const char* recipe : {"nvfp4:outer=16x32", "nvfp4:block=16x1,outer=col"}) {
        const quantized_operand q = of(recipe);
        CHECK(q.coded.format == nullptr);
        CHECK(forms_for(mx::gemm::parse_accumulator("exact"), row, q).second.words == "f32 values");
        try {
            forms_for(nvf4, row, q);
            FAIL("no error");
        } catch (const mx::base::error& e) {
            CHECK(has(e.what(), recipe));
            CHECK(has(e.what(), "differ along K"));
            CHECK(has(e.what(), "give outer=row or outer=tensor"));
            CHECK_FALSE(has(e.what(), "\n"));
        }
    }
    // Along one column nothing can differ.
    CHECK_FALSE(quantized(normal("v", 6, 1, 0), reduction::last, "nvfp4:outer=col,block=16x1")
                    .scaled_along_k);
}

TEST_CASE("the beginning of an operand is that of its codes and scales", "[gemm]") {
    const quantized_operand q = quantized(normal("w", 3, 100, 0), reduction::last, "mxfp4");
    const mx::gemm::operand x = first_of(q.coded, 64);
    CHECK(x.depth == 64);
    CHECK(x.codes[64] == q.coded.codes[100]);
    CHECK(x.scales == std::vector<std::uint8_t>{q.coded.scales[0], q.coded.scales[1],
                                                q.coded.scales[4], q.coded.scales[5],
                                                q.coded.scales[8], q.coded.scales[9]});
    CHECK(first_of(q.coded, 100).codes == q.coded.codes);
}

TEST_CASE("a product's errors are those against a product in double", "[gemm]") {
    const matrix a = normal("a", 6, 96, 0), b = normal("b", 5, 96, 4096);
    gemm_request request;
    request.recipe_a = parse_operand_recipe("mxfp4");
    request.recipe_b = parse_operand_recipe("mxfp8");
    request.over_b = reduction::last;
    request.models = {mx::gemm::parse_accumulator("sm100.mxf8f6f4"),
                      mx::gemm::parse_accumulator("exact")};
    const gemm_study s = study_gemm(a, b, nullptr, request, {});
    const quantized_operand qa = quantized(a, reduction::last, "mxfp4");
    const quantized_operand qb = quantized(b, reduction::last, "mxfp8");
    double error2 = 0, x2 = 0;
    for (std::size_t m = 0; m < 6; ++m) {
        for (std::size_t n = 0; n < 5; ++n) {
            // Doubles represent these sums exactly.
            const double given = dot(qa.values, qb.values, m, n, 96);
            CHECK(s.products[1].d[m * 5 + n] == static_cast<float>(given));
            const double exact = dot(a.values, b.values, m, n, 96);
            const double off = double{s.products[0].d[m * 5 + n]} - exact;
            error2 += off * off;
            x2 += exact * exact;
        }
    }
    CHECK(*s.products[0].errors.total.nrmse() == Approx(std::sqrt(error2 / x2)).epsilon(1e-6));
    CHECK(s.products[1].errors.accumulation.differing == 0);
    CHECK(s.differences.size() == 1);
    CHECK(s.differences[0].errors.differing == s.products[0].errors.accumulation.differing);
}

TEST_CASE("rotations of both operands cancel in the product", "[gemm]") {
    const matrix a = normal("a", 4, 128, 0), b = normal("b", 128, 3, 4096);
    gemm_request request;
    request.recipe_a = parse_operand_recipe("mxfp8:transform=random-hadamard,transform_seed=3");
    request.recipe_b = parse_operand_recipe("none");
    request.models = {mx::gemm::parse_accumulator("exact")};
    const gemm_study rotated = study_gemm(a, b, nullptr, request, {});
    // Only A is quantized: the error must match its own, not that of a missing inverse rotation.
    CHECK(*rotated.products[0].errors.total.nrmse() < 0.06);
    CHECK(*rotated.products[0].errors.total.nrmse() > 0.01);
    CHECK(*rotated.b.nrmse() == 0);
}

TEST_CASE("C, alpha and beta are in the exact product too", "[gemm]") {
    const matrix a = normal("a", 2, 32, 0), b = normal("b", 32, 2, 4096);
    matrix c = normal("c", 2, 2, 8192);
    for (float& v : c.values) v *= 1024;
    gemm_request request;
    request.recipe_a = request.recipe_b = parse_operand_recipe("none");
    request.models = {mx::gemm::parse_accumulator("exact")};
    request.how.alpha = 2;
    request.how.beta = -1;
    const gemm_study s = study_gemm(a, b, &c, request, {});
    const std::vector<float> turned = reduction_last(b.values, 32, 2, reduction::first);
    for (std::size_t i = 0; i < 4; ++i) {
        const double expected = 2 * dot(a.values, turned, i / 2, i % 2, 32) - double{c.values[i]};
        CHECK(double{s.products[0].d[i]} == Approx(expected).epsilon(1e-6));
    }
    CHECK(s.products[0].errors.total.differing == 0);
    matrix wrong = normal("c", 2, 3, 0);
    CHECK_THROWS_AS(study_gemm(a, b, &wrong, request, {}), mx::base::error);
}

TEST_CASE("shapes that do not fit say what would", "[gemm]") {
    const matrix a = normal("a", 4, 64, 0), b = normal("b", 16, 64, 0);
    gemm_request request;
    request.recipe_a = request.recipe_b = parse_operand_recipe("mxfp8");
    try {
        study_gemm(a, b, nullptr, request, {});
        FAIL("no error");
    } catch (const mx::base::error& e) {
        CHECK(has(e.what(), "--transpose-b fits"));
    }
}

TEST_CASE("errors grow with K from the same beginning", "[gemm]") {
    const matrix a = normal("a", 4, 1024, 0), b = normal("b", 4, 1024, 8192);
    gemm_request request;
    request.recipe_a = request.recipe_b = parse_operand_recipe("mxfp8");
    request.over_b = reduction::last;
    request.models = {mx::gemm::parse_accumulator("fp32.fma")};
    request.growth = true;
    const gemm_study s = study_gemm(a, b, nullptr, request, {});
    REQUIRE(s.growth.size() == 4);
    CHECK(s.growth[0].depth == 128);
    CHECK(s.growth[1].depth == 256);
    CHECK(s.growth[2].depth == 512);
    CHECK(s.growth[3].depth == 1024);
    // A product over the first 256 elements is the same product by itself.
    matrix short_a = a, short_b = b;
    for (matrix* m : {&short_a, &short_b}) {
        std::vector<float> values;
        for (std::size_t r = 0; r < 4; ++r) {
            values.insert(values.end(), m->values.begin() + static_cast<std::ptrdiff_t>(r * 1024),
                          m->values.begin() + static_cast<std::ptrdiff_t>(r * 1024 + 256));
        }
        m->values = values;
        m->cols = 256;
    }
    request.growth = false;
    const gemm_study alone = study_gemm(short_a, short_b, nullptr, request, {});
    CHECK(alone.products[0].errors.total.error2 == s.growth[1].errors.total.error2);
}

TEST_CASE("a tensor of any rank is a matrix of rows", "[gemm]") {
    mx::tests::memory_model file;
    file.add("x", mx::tensor::dtype::f32, {2, 3, 4}, std::vector<float>(24, 1.5f));
    file.add("v", mx::tensor::dtype::f32, {4}, std::vector<float>(4, 1.0f));
    file.add("mask", mx::tensor::dtype::boolean, {4}, std::vector<std::uint8_t>(4, 1));
    const matrix x = read_matrix(file.all()[0], {});
    CHECK(x.rows == 6);
    CHECK(x.cols == 4);
    CHECK(x.values.size() == 24);
    CHECK(read_matrix(file.all()[1], {}).rows == 1);
    CHECK_THROWS_AS(read_matrix(file.all()[2], {}), mx::base::error);
}
