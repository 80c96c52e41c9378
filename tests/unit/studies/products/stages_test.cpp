// SPDX-License-Identifier: Apache-2.0
// The three products of a layer: their operands, the summed axis, and the figures.
#include <cmath>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/bench/normal_values.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/studies/products/quantized_operand.hpp"
#include "libmx/studies/products/stages.hpp"
#include "tests/catch.hpp"

using namespace mx::bench;
using namespace mx::products;
using namespace mx::products;

namespace {

constexpr std::size_t tokens = 40, in = 64, out = 33;

matrix normal(const char* name, std::size_t rows, std::size_t cols, std::size_t skip) {
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

struct layer {
    matrix x = normal("x", tokens, in, 0);
    matrix w = normal("w", out, in, 5000);
    matrix dy = normal("dy", tokens, out, 9000);
    layer_tensors tensors() const { return {&x, &w, &dy}; }
};

stages_request request_with(const char* recipe) {
    stages_request r;
    for (auto& pair : r.recipes)
        pair = {parse_operand_recipe(recipe), parse_operand_recipe(recipe)};
    r.transforms = {"none"};
    r.requantize = false;
    r.models = {mx::gemm::parse_accumulator("exact")};
    return r;
}

double at(const std::vector<float>& v, std::size_t r, std::size_t c, std::size_t cols) {
    return double{v[r * cols + c]};
}

// sqrt of the relative squared error of sum(a b) over k, from functions of (row, k) and (column,
// k).
template <typename A, typename B, typename QA, typename QB>
double relative_error(std::size_t m, std::size_t n, std::size_t k, A a, B b, QA qa, QB qb) {
    double error2 = 0, x2 = 0;
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            double exact = 0, given = 0;
            for (std::size_t l = 0; l < k; ++l) {
                exact += a(i, l) * b(j, l);
                given += qa(i, l) * qb(j, l);
            }
            error2 += (given - exact) * (given - exact);
            x2 += exact * exact;
        }
    }
    return std::sqrt(error2 / x2);
}

std::vector<float> as_stored(const matrix& m, reduction over, const char* recipe) {
    const operand_recipe r = parse_operand_recipe(recipe);
    return values_as_stored(quantize_operand(m, over, r, r.rotation(), {}), over);
}

}  // namespace

TEST_CASE("each stage multiplies its tensors along its own axis", "[stages]") {
    const layer l;
    const std::vector<stage_result> r =
        study_stages(l.tensors(), request_with("mxfp4:scale=even"), {});
    REQUIRE(r.size() == 3);
    const char* recipe = "mxfp4:scale=even";
    const auto x_in = as_stored(l.x, reduction::last, recipe);
    const auto x_tokens = as_stored(l.x, reduction::first, recipe);
    const auto w_in = as_stored(l.w, reduction::last, recipe);
    const auto w_out = as_stored(l.w, reduction::first, recipe);
    const auto dy_out = as_stored(l.dy, reduction::last, recipe);
    const auto dy_tokens = as_stored(l.dy, reduction::first, recipe);
    const auto row = [](const std::vector<float>& v, std::size_t cols) {
        return [&v, cols](std::size_t i, std::size_t k) { return at(v, i, k, cols); };
    };
    const auto column = [](const std::vector<float>& v, std::size_t cols) {
        return [&v, cols](std::size_t i, std::size_t k) { return at(v, k, i, cols); };
    };
    CHECK(r[0].m == tokens);
    CHECK(r[0].n == out);
    CHECK(*r[0].errors.total.nrmse() ==
          Approx(relative_error(tokens, out, in, row(l.x.values, in), row(l.w.values, in),
                                row(x_in, in), row(w_in, in)))
              .epsilon(1e-5));
    CHECK(r[1].k == out);
    CHECK(*r[1].zeta() ==
          Approx(relative_error(tokens, in, out, row(l.dy.values, out), column(l.w.values, in),
                                row(dy_out, out), column(w_out, in)))
              .epsilon(1e-5));
    CHECK(r[2].m == out);
    CHECK(r[2].n == in);
    CHECK(*r[2].zeta() ==
          Approx(relative_error(out, in, tokens, column(l.dy.values, out), column(l.x.values, in),
                                column(dy_tokens, out), column(x_tokens, in)))
              .epsilon(1e-5));
    CHECK_FALSE(r[0].zeta().has_value());
}

TEST_CASE("without recipes nothing is lost, and without dY there is only Fprop", "[stages]") {
    const layer l;
    for (const stage_result& r : study_stages(l.tensors(), request_with("none"), {})) {
        CHECK(r.errors.total.differing == 0);
    }
    const layer_tensors forward{&l.x, &l.w, nullptr};
    CHECK(study_stages(forward, request_with("mxfp4"), {}).size() == 1);
}

TEST_CASE("a recipe belongs to its stage and operand alone", "[stages]") {
    const layer l;
    stages_request request = request_with("none");
    request.recipes[2][1] = parse_operand_recipe("mxfp4");  // X in Wgrad
    const std::vector<stage_result> r = study_stages(l.tensors(), request, {});
    CHECK(r[0].errors.total.differing == 0);
    CHECK(r[1].errors.total.differing == 0);
    CHECK(*r[2].zeta() > 0.05);
    CHECK(*r[2].operands[0].nrmse() == 0);
    CHECK(*r[2].operands[1].nrmse() == Approx(*r[2].expected_nrmse()));
}

TEST_CASE("an operand quantized twice begins with what the other axis left", "[stages]") {
    const layer l;
    stages_request request = request_with("mxfp4:scale=even");
    request.requantize = true;
    const std::vector<stage_result> r = study_stages(l.tensors(), request, {});
    REQUIRE(r.size() == 5);  // Fprop has no transposed operand
    CHECK(r[2].requantized);
    CHECK(r[2].stage == 1);
    matrix copy = l.w;
    copy.values = as_stored(l.w, reduction::last, "mxfp4:scale=even");
    const auto twice = as_stored(copy, reduction::first, "mxfp4:scale=even");
    CHECK(*r[2].operands[1].nrmse() == *compare_values(l.w.values, twice).nrmse());
    CHECK(*r[2].operands[1].nrmse() > *r[1].operands[1].nrmse());
    CHECK(*r[2].operands[0].nrmse() == *r[1].operands[0].nrmse());  // dY is not transposed here
}

TEST_CASE("what a transform does not change is measured once", "[stages]") {
    const layer l;
    stages_request request = request_with("mxfp4");
    request.transforms = {"hadamard", "none", "none"};
    request.requantize = true;
    request.recipes[2] = {parse_operand_recipe("bf16"), parse_operand_recipe("bf16")};
    const std::vector<stage_result> r = study_stages(l.tensors(), request, {});
    std::vector<std::string> seen;
    for (const stage_result& one : r) {
        seen.push_back(std::string(stage_rows[one.stage].title) + " " + one.transform +
                       (one.requantized ? " twice" : ""));
    }
    // Wgrad's operands are not rotated, but the copies that Fprop and Dgrad leave are.
    CHECK(seen == std::vector<std::string>{"Fprop hadamard", "Fprop none", "Dgrad hadamard",
                                           "Dgrad hadamard twice", "Dgrad none", "Dgrad none twice",
                                           "Wgrad ", "Wgrad hadamard twice", "Wgrad none twice"});
    CHECK(*r[6].zeta() < 0.01);
    CHECK(*r[7].zeta() != *r[8].zeta());
    request = request_with("none");
    request.transforms = {"none", "hadamard"};
    request.requantize = true;
    CHECK(study_stages(l.tensors(), request, {}).size() == 5);
}

TEST_CASE("rotations cancel: with fine formats the product stays", "[stages]") {
    const layer l;
    stages_request request = request_with("mxint8");
    request.transforms = {"none", "hadamard", "random-hadamard"};
    request.requantize = true;
    const std::vector<stage_result> r = study_stages(l.tensors(), request, {});
    REQUIRE(r.size() == 15);
    for (const stage_result& one : r) {
        INFO(stage_rows[one.stage].name << ' ' << one.transform);
        CHECK(*one.errors.total.nrmse() < 0.03);
        CHECK(*one.errors.total.nrmse() > 1e-3);
    }
}

TEST_CASE("stages refuse tensors that do not fit each other", "[stages]") {
    const layer l;
    const matrix turned = transposed(l.w);
    CHECK(turned.rows == in);
    CHECK(turned.values[out] == l.w.values[1]);
    const layer_tensors wrong{&l.x, &turned, &l.dy};
    try {
        study_stages(wrong, request_with("mxfp4"), {});
        FAIL("no error");
    } catch (const mx::base::error& e) {
        CHECK(std::string(e.what()).find("--transpose-w fits") != std::string::npos);
    }
    const layer_tensors swapped{&l.x, &l.w, &l.x};
    CHECK_THROWS_AS(study_stages(swapped, request_with("mxfp4"), {}), mx::base::error);
}

TEST_CASE("errors and gains have the standard errors of their rows and columns", "[stages]") {
    // Two rows, three columns; d - x is 0.1 x, and in the second row 0.3 x.
    const std::vector<float> x{1, 1, 1, 1, 1, 1};
    const std::vector<float> d{1.125F, 1.125F, 1.125F, 1.375F, 1.375F, 1.375F};
    const error_sums s = sums_by_row_and_column(x, d, 2);
    CHECK(s.x2 == std::vector<double>{3, 3, 2, 2, 2});
    CHECK(s.xe == std::vector<double>{0.375, 1.125, 0.5, 0.5, 0.5});
    // Columns agree; rows deviate by 0.125 from the mean gain of 1.25, half of the squares each.
    CHECK(*gain_standard_error(s) == Approx(std::sqrt(2.0 * 2 * 0.0625 * 0.0625)));
    // Twice the error everywhere: a ratio without doubt.
    std::vector<float> twice;
    for (std::size_t i = 0; i < x.size(); ++i) twice.push_back(x[i] + 2 * (d[i] - x[i]));
    const auto ratio = ratio_of_errors(sums_by_row_and_column(x, twice, 2), s);
    REQUIRE(ratio);
    CHECK(ratio->value == Approx(2));
    CHECK(*ratio->standard_error == Approx(0).margin(1e-12));
    CHECK_FALSE(gain_standard_error(sums_by_row_and_column(x, d, 1)));
    CHECK_FALSE(ratio_of_errors(s, sums_by_row_and_column(x, x, 2)));
}

TEST_CASE("rotations of normal operands are not said to change anything", "[stages]") {
    const layer l;
    stages_request request = request_with("mxfp4:scale=even");
    request.transforms = {"none", "hadamard", "random-hadamard"};
    int sure = 0;
    for (const stage_result& r : study_stages(l.tensors(), request, {})) {
        if (!r.over_first) continue;
        REQUIRE(r.over_first->standard_error);
        if (std::abs(r.over_first->value - 1) > 2 * *r.over_first->standard_error) ++sure;
    }
    CHECK(sure <= 1);  // of six: one in twenty is beyond twice its standard error by chance
}
