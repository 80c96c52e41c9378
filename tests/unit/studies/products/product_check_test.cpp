// SPDX-License-Identifier: Apache-2.0
// Products against what kernels of a class can give, and faults planted in them.
#include "libmx/studies/products/product_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "libmx/base/half.hpp"
#include "libmx/base/status.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/studies/products/gemm_study.hpp"
#include "libmx/studies/products/identify.hpp"
#include "libmx/studies/products/product_power.hpp"
#include "tests/catch.hpp"

namespace {

using namespace mx;
using namespace mx::products;

matrix matrix_of(std::size_t rows, std::size_t cols, std::vector<float> values) {
    matrix m;
    m.name = "m";
    m.rows = rows;
    m.cols = cols;
    m.shape = {rows, cols};
    m.values = std::move(values);
    return m;
}

matrix gaussian(std::size_t rows, std::size_t cols, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::normal_distribution<float> draw;
    std::vector<float> x(rows * cols);
    std::ranges::generate(x, [&] { return draw(random); });
    return matrix_of(rows, cols, std::move(x));
}

check_request request_of(const std::string& recipe, const std::string& kernels) {
    check_request r;
    r.recipe_a = r.recipe_b = parse_operand_recipe(recipe);
    r.of = parse_kernel_class(kernels);
    return r;
}

matrix product_by(const std::string& model, const matrix& a, const matrix& b,
                  const std::string& recipe) {
    gemm_request r;
    r.recipe_a = r.recipe_b = parse_operand_recipe(recipe);
    r.models = {gemm::parse_accumulator(model)};
    const gemm_study s = study_gemm(a, b, nullptr, r, {});
    return matrix_of(s.m, s.n, s.products.front().d);
}

}  // namespace

TEST_CASE("products lie in the intervals of their class", "[products]") {
    const matrix a = gaussian(9, 96, 1), b = gaussian(96, 7, 2);
    for (const std::string recipe : {"mxfp4", "nvfp4", "mxfp8", "mxint8", "none", "bf16",
                                     "e4m3:scale=tensor", "mxfp8:transform=hadamard"}) {
        INFO(recipe);
        for (const std::string model : {"fp32.fma", "fp32.pairwise", "exact"}) {
            INFO(model);
            const matrix d = product_by(model, a, b, recipe);
            const product_check p =
                check_product(d, a, b, nullptr, request_of(recipe, "any-order-f32"), {});
            CHECK(p.outside == 0);
            CHECK(p.first.empty());
            CHECK(p.unbounded == 0);
            CHECK(p.outputs() == 63);
            CHECK((recipe == "mxfp4") == (p.single == 63));
        }
    }
    // A unit that truncates gives neighbours, and one that keeps 13 bits not even those.
    const matrix truncated = product_by("sm100.f16", a, b, "bf16");
    const auto outside = [&](const matrix& d, const char* recipe, const char* kernels) {
        return check_product(d, a, b, nullptr, request_of(recipe, kernels), {}).outside;
    };
    CHECK(outside(truncated, "bf16", "any-order-f32-faithful") == 0);
    CHECK(outside(truncated, "bf16", "sm100.f16") == 0);
    CHECK(outside(truncated, "bf16", "fp32.fma") > 30);
    const matrix coarse = product_by("sm90.wgmma.fp8", a, b, "e4m3");
    CHECK(outside(coarse, "e4m3", "any-order-f32-faithful") > 30);
    CHECK(outside(coarse, "e4m3", "sm90.wgmma.fp8") == 0);
}

TEST_CASE("one wrong output is found, with its place and interval", "[products]") {
    const matrix a = gaussian(3, 64, 3), b = gaussian(64, 5, 4);
    matrix d = product_by("exact", a, b, "mxfp8");
    const float right = d.values[2 * 5 + 1];
    d.values[2 * 5 + 1] = right * 1.0001F;
    d.values[0] = std::numeric_limits<float>::quiet_NaN();
    check_request r = request_of("mxfp8", "any-order-f32");
    product_check p = check_product(d, a, b, nullptr, r, {});
    REQUIRE(p.first.size() == 2);
    CHECK(p.outside == 2);
    CHECK(std::isnan(p.first[0].got));
    CHECK(p.first[1].row == 2);
    CHECK(p.first[1].column == 1);
    CHECK(p.first[1].low <= static_cast<double>(right));
    CHECK(static_cast<double>(right) <= p.first[1].high);
    r.show = 1;
    p = check_product(d, a, b, nullptr, r, {});
    CHECK(p.outside == 2);
    CHECK(p.first.size() == 1);
    // C is one more term.
    const matrix c = matrix_of(3, 5, std::vector<float>(15, 1000));
    CHECK(check_product(d, a, b, &c, r, {}).outside == 15);
}

TEST_CASE("outputs in bfloat16 conform if the float32 before may round to them", "[products]") {
    const matrix a = gaussian(8, 64, 5), b = gaussian(64, 8, 6);
    matrix d = product_by("fp32.fma", a, b, "mxfp8");
    for (float& x : d.values) x = base::rounded_to_bf16(x);
    const check_request r = request_of("mxfp8", "any-order-f32");
    CHECK(check_product(d, a, b, nullptr, r, {}).outside > 50);  // not as float32
    d.type = tensor::dtype::bf16;
    CHECK(check_product(d, a, b, nullptr, r, {}).outside == 0);
    d.values[3] *= 1.02F;
    CHECK(check_product(d, a, b, nullptr, r, {}).outside == 1);
    d.type = tensor::dtype::i8;
    CHECK_THROWS_AS(check_product(d, a, b, nullptr, r, {}), base::error);
}

TEST_CASE("outputs identify the model that gave them, or those that it equals",
          "[products][slow]") {
    const matrix a = gaussian(24, 512, 9), b = gaussian(512, 24, 10);
    std::size_t alone = 0, tried = 0;
    for (const char* recipe :
         {"bf16", "f16", "e4m3", "mxfp8", "mxfp4", "nvfp4:scale=single-level"}) {
        gemm_request r;
        r.recipe_a = r.recipe_b = parse_operand_recipe(recipe);
        const matrix any = product_by("exact", a, b, recipe);
        const std::string_view name_of = recipe;
        const bool tells_bits = name_of == "bf16" || name_of == "f16" || name_of == "mxfp8";
        for (const candidate_unit& u : identify_unit(any, a, b, nullptr, r, {})) {
            const std::string name = gemm::to_string(u.model);
            INFO(recipe << " by " << name);
            const matrix d = product_by(name, a, b, recipe);
            const auto found = identify_unit(d, a, b, nullptr, r, {});
            std::size_t equal = 0;
            bool itself = false;
            for (const candidate_unit& v : found) {
                if (v.differing != 0) continue;
                ++equal;
                itself = itself || gemm::to_string(v.model) == name;
                // Products of FP4 and of E4M3 span too few bits to depend on F.
                if (tells_bits && v.model.how == u.model.how && gemm::has_steps(u.model.how)) {
                    CHECK(v.model.fraction_bits == u.model.fraction_bits);
                    CHECK(v.model.convert == u.model.convert);
                }
            }
            CHECK(itself);
            alone += equal == 1 ? 1 : 0;
            ++tried;
        }
    }
    CHECK(tried > 80);
    CHECK(alone >= 10);
    // A changed field is found among those asked for, and D of another shape refused.
    gemm_request r;
    r.recipe_a = r.recipe_b = parse_operand_recipe("bf16");
    r.models = {gemm::parse_accumulator("sm100.f16"),
                gemm::parse_accumulator("sm100.f16:fraction_bits=23")};
    const auto found =
        identify_unit(product_by("sm100.f16:fraction_bits=23", a, b, "bf16"), a, b, nullptr, r, {});
    CHECK(found.front().model.fraction_bits == 23);
    CHECK(found.front().differing == 0);
    CHECK(found.back().differing > 0);
    CHECK_THROWS_AS(identify_unit(a, a, b, nullptr, r, {}), base::error);
}

TEST_CASE("the probe tells models apart that take its operands", "[products][slow]") {
    for (const auto& [recipe, classes] : {std::pair{"bf16", 9},
                                          {"f16", 12},
                                          {"tf32", 6},
                                          {"e4m3", 19},
                                          {"e2m1", 2},
                                          {"mxfp8", 10},
                                          {"mxfp4", 11},
                                          {"nvfp4", 12}}) {
        INFO(recipe);
        gemm_request r;
        r.recipe_a = r.recipe_b = parse_operand_recipe(recipe);
        const unit_probe made = make_unit_probe(r.recipe_a, 0, {});
        CHECK(made.m * made.n < 1000);
        CHECK(made.classes.size() == static_cast<std::size_t>(classes));
        const matrix a = matrix_of(made.m, made.k, made.a), b = matrix_of(made.k, made.n, made.b);
        for (const auto& models : made.classes) {
            std::set<std::string_view> expected;
            for (const gemm::accumulator& m : models) expected.insert(m.name);
            for (const gemm::accumulator& m : models) {
                INFO(m.name);
                const matrix d = product_by(gemm::to_string(m), a, b, recipe);
                std::set<std::string_view> equal;
                for (const candidate_unit& u : identify_unit(d, a, b, nullptr, r, {})) {
                    if (u.differing == 0) equal.insert(u.model.name);
                    CHECK(u.differing != 1);
                }
                CHECK(equal == expected);
            }
        }
    }
    const operand_recipe bf16 = parse_operand_recipe("bf16");
    CHECK(make_unit_probe(bf16, 0, {}).a == make_unit_probe(bf16, 0, {}).a);
    CHECK(make_unit_probe(bf16, 0, {}).a != make_unit_probe(bf16, 1, {}).a);
    CHECK_THROWS_AS(make_unit_probe(parse_operand_recipe("mxfp4:block=16x16"), 0, {}), base::error);
    CHECK_THROWS_AS(make_unit_probe(parse_operand_recipe("mxfp4:transform=hadamard"), 0, {}),
                    base::error);
}

TEST_CASE("no fault passes tolerances or intervals on sharp inputs", "[products]") {
    for (const char* recipe : {"mxfp4", "mxfp8", "nvfp4", "mxint8"}) {
        INFO(recipe);
        const check_request r = request_of(recipe, "any-order-f32-faithful");
        const power_inputs made = make_power_inputs(*r.recipe_a.blocks, 0);
        const matrix a = matrix_of(made.m, made.k, made.a), b = matrix_of(made.k, made.n, made.b);
        const power_study s = study_power(a, b, r, {0.1, 0.1}, {});
        CHECK(s.faults.size() >= 4);
        for (const fault_power& f : s.faults) {
            INFO(f.fault);
            CHECK(f.close == 0);
            CHECK(f.inside == 0);
            CHECK(f.cosine < 1);
        }
    }
    // On uniform inputs tolerances let most faults of single blocks pass.
    matrix a = gaussian(16, 2048, 7), b = gaussian(2048, 16, 8);
    for (matrix* m : {&a, &b}) {
        for (float& x : m->values) x = std::abs(std::sin(100 * x));
    }
    const power_study s = study_power(a, b, request_of("mxfp4", "any-order-f32"), {}, {});
    REQUIRE(s.faults.front().planted == 64);
    std::uint64_t close = 0, inside = 0;
    for (const fault_power& f : s.faults) {
        close += f.close;
        inside += f.inside;
    }
    CHECK(close > 64);
    CHECK(inside == 0);
}
