// SPDX-License-Identifier: Apache-2.0
// The products of a linear layer, each operand in blocks of each shape: against operands quantized
// and products summed by hand, bit for bit.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/lab/layers.hpp"
#include "tests/catch.hpp"
#include "tests/lab/same_bits.hpp"

namespace mx::lab {
namespace {

constexpr std::size_t tokens = 2011, in = 37, out = 21;

struct matrix {
    std::size_t rows, cols;
    std::vector<float> x;
    float at(std::size_t r, std::size_t c) const { return x[r * cols + c]; }
};

matrix numbers(std::uint64_t tensor, std::size_t rows, std::size_t cols) {
    matrix m{rows, cols, std::vector<float>(rows * cols)};
    simd::scalar_kernels.normal({5, tensor}, 0, m.x.size(), m.x.data());
    return m;
}

// MXFP4 by its definition: the nearest of eight magnitudes, the even code in the middle.
float e2m1(float y) {
    constexpr std::array values{0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
    std::size_t best = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        const float here = std::abs(std::abs(y) - values[i]);
        const float there = std::abs(std::abs(y) - values[best]);
        if (here < there || (here == there && i % 2 == 0)) best = i;
    }
    return std::copysign(values[best], y);
}

matrix mxfp4(matrix m, std::size_t high, std::size_t wide) {
    for (std::size_t r0 = 0; r0 < m.rows; r0 += high) {
        for (std::size_t c0 = 0; c0 < m.cols; c0 += wide) {
            const auto each = [&](const auto& body) {
                for (std::size_t r = r0; r < std::min(m.rows, r0 + high); ++r) {
                    for (std::size_t c = c0; c < std::min(m.cols, c0 + wide); ++c) {
                        body(m.x[r * m.cols + c]);
                    }
                }
            };
            float amax = 0;
            each([&](float v) { amax = std::max(amax, std::abs(v)); });
            const int exponent = std::ilogb(amax) - 2;
            each([&](float& v) { v = std::ldexp(e2m1(std::ldexp(v, -exponent)), exponent); });
        }
    }
    return m;
}

struct shape {
    std::size_t high, wide;
};

// In a product that sums over the first axis of a matrix, vectors are turned and tiles are not.
matrix operand(const matrix& m, shape block, bool over_first) {
    const bool vector = block.high == 1 || block.wide == 1;
    if (over_first && vector) std::swap(block.high, block.wide);
    return mxfp4(m, block.high, block.wide);
}

template <typename A, typename B>
std::vector<float> product(std::size_t rows, std::size_t cols, std::size_t depth, A a, B b) {
    std::vector<float> c;
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < cols; ++j) {
            float sum = 0;
            for (std::size_t k = 0; k < depth; ++k) sum = std::fma(a(i, k), b(k, j), sum);
            c.push_back(sum);
        }
    }
    return c;
}

struct results {
    std::vector<float> y, dx, dw;
};

results by_hand(const matrix& x, const matrix& w, const matrix& dy, const std::string& key,
                shape block) {
    const auto of = [&](const char* name, const matrix& m, bool over_first) {
        return key == name ? operand(m, block, over_first) : m;
    };
    const matrix fx = of("fprop-x", x, false), fw = of("fprop-w", w, false);
    const matrix gy = of("dgrad-dy", dy, false), gw = of("dgrad-w", w, true);
    const matrix wy = of("wgrad-dy", dy, true), wx = of("wgrad-x", x, true);
    using index = std::size_t;
    return {product(
                tokens, out, in, [&](index i, index k) { return fx.at(i, k); },
                [&](index k, index j) { return fw.at(j, k); }),
            product(
                tokens, in, out, [&](index i, index k) { return gy.at(i, k); },
                [&](index k, index j) { return gw.at(k, j); }),
            product(
                out, in, tokens, [&](index i, index k) { return wy.at(k, i); },
                [&](index k, index j) { return wx.at(k, j); })};
}

results by_layer(execution_context& on, const matrix& x, const matrix& w, const matrix& dy,
                 const std::string& settings) {
    const precision how = precision_of(parse_settings(settings));
    layer_buffers buffers;
    const layer_context c{on, how, buffers};
    const linear_layer l{"l", tokens, in, out, w.x.data(), nullptr};
    results r{std::vector<float>(tokens * out), std::vector<float>(tokens * in),
              std::vector<float>(out * in)};
    linear_forward(c, l, x.x.data(), r.y.data());
    linear_backward(c, l, x.x.data(), dy.x.data(), r.dx.data(), r.dw.data(), nullptr);
    return r;
}

TEST_CASE("an operand's blocks lie along the axis that is summed over, across it, or in tiles") {
    const matrix x = numbers(1, tokens, in), w = numbers(2, out, in), dy = numbers(3, tokens, out);
    const results plain = by_hand(x, w, dy, "", {1, 1});
    for (const shape block : {shape{1, 8}, shape{8, 1}, shape{4, 8}, shape{32, 32}}) {
        for (const char* key :
             {"fprop-x", "fprop-w", "dgrad-dy", "dgrad-w", "wgrad-dy", "wgrad-x"}) {
            const results expected = by_hand(x, w, dy, key, block);
            CHECK_FALSE((same_bits(expected.y, plain.y) && same_bits(expected.dx, plain.dx) &&
                         same_bits(expected.dw, plain.dw)));
            const std::string settings = std::string(key) +
                                         "=mxfp4:block=" + std::to_string(block.high) + "x" +
                                         std::to_string(block.wide);
            for (const simd::kernels* k : simd::available()) {
                for (const int threads : {1, 2, 7}) {
                    INFO(settings << " " << k->name << " " << threads);
                    execution_context on(threads, k->name);
                    const results r = by_layer(on, x, w, dy, settings);
                    CHECK(same_bits(r.y, expected.y));
                    CHECK(same_bits(r.dx, expected.dx));
                    CHECK(same_bits(r.dw, expected.dw));
                }
            }
        }
    }
}

TEST_CASE("a second product quantizes the first one's copy, in blocks of any shape") {
    const matrix x = numbers(1, tokens, in), w = numbers(2, out, in), dy = numbers(3, tokens, out);
    for (const shape block : {shape{1, 8}, shape{8, 1}, shape{4, 8}}) {
        const std::string size = std::to_string(block.high) + "x" + std::to_string(block.wide);
        execution_context on(2);
        const results r = by_layer(on, x, w, dy, "all=mxfp4:block=" + size + " source=requantized");
        const matrix fx = operand(x, block, false), fw = operand(w, block, false),
                     gy = operand(dy, block, false);
        const matrix gw = operand(fw, block, true), wy = operand(gy, block, true),
                     wx = operand(fx, block, true);
        using index = std::size_t;
        INFO(size);
        CHECK(same_bits(r.y, product(
                                 tokens, out, in, [&](index i, index k) { return fx.at(i, k); },
                                 [&](index k, index j) { return fw.at(j, k); })));
        CHECK(same_bits(r.dx, product(
                                  tokens, in, out, [&](index i, index k) { return gy.at(i, k); },
                                  [&](index k, index j) { return gw.at(k, j); })));
        CHECK(same_bits(r.dw, product(
                                  out, in, tokens, [&](index i, index k) { return wy.at(k, i); },
                                  [&](index k, index j) { return wx.at(k, j); })));
    }
}

TEST_CASE("the products of mx gemm take the same blocks") {
    const matrix x = numbers(1, tokens, in), w = numbers(2, out, in), dy = numbers(3, tokens, out);
    for (const char* size : {"8x1", "4x8"}) {
        const std::string settings = std::string("all=mxfp4:block=") + size;
        execution_context on(2);
        const results r = by_layer(on, x, w, dy, settings);
        const results model = by_layer(on, x, w, dy, settings + " accumulate=fp32.fma");
        INFO(size);
        CHECK(same_bits(r.y, model.y));
        CHECK(same_bits(r.dx, model.dx));
        CHECK(same_bits(r.dw, model.dw));
    }
}

TEST_CASE("blocks across the features of a layer norm are refused") {
    for (const char* key : {"ln-gain", "ln-input", "ln-output"}) {
        const std::string setting = std::string(key) + "=mxfp8:block=";
        CHECK_THROWS_AS(precision_of(parse_settings(setting + "32x1")), base::error);
        CHECK_NOTHROW(precision_of(parse_settings(setting + "1x16")));
    }
}

}  // namespace
}  // namespace mx::lab
