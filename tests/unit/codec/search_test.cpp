// SPDX-License-Identifier: Apache-2.0
// Searched scales: the definition for ties, zeros and ends of the range, and published errors.
// tests/conformance compares blocks of every kind with a search in exact integers.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "libmx/codec/best_scales.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "tests/catch.hpp"

using namespace mx;
using codec::parse_recipe;

namespace {

int code_of(const std::string& recipe, const std::vector<float>& x, float tensor_amax = 0) {
    const codec::block_params p =
        codec::params_of(parse_recipe(recipe), {base::bits_of(tensor_amax)});
    std::vector<std::uint8_t> codes(x.size());
    return codec::quantize_block(p, x, {}, codes).scale_code;
}

// The mean squared error over many blocks of 16.
double error_of(const std::string& recipe, const std::vector<float>& x, float tensor_amax) {
    const codec::block_params p =
        codec::params_of(parse_recipe(recipe), {base::bits_of(tensor_amax)});
    std::uint8_t codes[16];
    double sum = 0;
    for (std::size_t at = 0; at < x.size(); at += 16) {
        sum += codec::measure_block(p, {x.data() + at, 16}, {}, codes).sum.error2;
    }
    return sum / static_cast<double>(x.size());
}

}  // namespace

TEST_CASE("of scales with one error the larger is taken") {
    // 1 is exact under 1/4, 1/2, 1 and 2; under 4 it is between 0 and 0.5 and rounds to 0.
    CHECK(code_of("mxfp4:scale=search", {1, 1, 1}) == 128);
    CHECK(code_of("mxfp4:scale=search,search=mae", {1, -1, 1}) == 128);
    // 3 is 1.5 x 2; 6 is 3 x 2: under 2 all of them are exact, under 4 the 1 is not.
    CHECK(code_of("mxfp4:scale=search", {1, 3, 6}) == 128);
    CHECK(code_of("nvfp4:scale=search-single-level", {448}) == 0x7e);
}

TEST_CASE("zeros, what no scale can hold, and NaN have scales of their own") {
    const float inf = std::numeric_limits<float>::infinity();
    CHECK(code_of("mxfp4:scale=search", {0, -0.0f, 0}) == 0);
    CHECK(code_of("nvfp4:scale=search", {0, 0}, 1) == 0);
    CHECK(code_of("mxfp4:scale=search", {0x1p-149f, 0}) == 254);
    CHECK(code_of("nvfp4:scale=search-single-level", {0x1p-20f}) == 126);
    CHECK(code_of("nvfp4:scale=search-single-level", {1e30f, 1}) == 126);
    CHECK(code_of("mxfp4:scale=search", {1, NAN}) == 255);
    CHECK(code_of("mxfp4:scale=search", {1, -inf}) == 255);
    CHECK(code_of("nvfp4:scale=search", {1, inf}, 1) == 127);
}

TEST_CASE("sums that no double tells apart are still compared") {
    // In double precision, all of the error is in the first element; the others decide.
    CHECK(code_of("nvfp4:scale=search-single-level,search=mae", {0x1p100f, 448}) == 126);
    const std::vector<float> x{0x1p60f, 0x1p-9f, 0x1p-9f, 0x1p-9f,
                               0x1p-9f, 0x1p-9f, 0x1p-9f, 0x1p-9f};
    // Each code up reduces the error of the first by 6 units and that of the others by at most 7 x
    // 2^-9.
    CHECK(code_of("nvfp4:scale=search-single-level,search=mae", x) == 126);
}

TEST_CASE("a reach of 0 is the rule that it counts from") {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (int i = 0; i < 200; ++i) {
        std::vector<float> x(16);
        for (float& v : x) v = normal(random);
        CHECK(code_of("mxfp4:scale=search,reach=0", x) == code_of("mxfp4", x));
        CHECK(code_of("nvfp4:scale=search,reach=0", x, 4) == code_of("nvfp4", x, 4));
        const int first = code_of("nvfp4", x, 4);
        const int near = code_of("nvfp4:scale=search,reach=2", x, 4);
        CHECK(std::abs(near - first) <= 2);
    }
}

TEST_CASE("the errors published for searched NVFP4 scales come out", "[slow]") {
    // sgl-project/sglang#27246: 0.01716 and 0.01360, which are those of Laplace(0, 1).
    std::mt19937_64 random(11);
    std::exponential_distribution<float> exponential;
    std::normal_distribution<float> normal;
    std::vector<float> laplace(1 << 20), gauss(1 << 20);
    float amax_l = 0, amax_g = 0;
    for (std::size_t i = 0; i < laplace.size(); ++i) {
        const auto bf16 = [](float v) {
            return base::float_from_bits((base::bits_of(v) + 0x8000u) & 0xffff0000u);
        };
        laplace[i] = bf16(random() % 2 == 0 ? exponential(random) : -exponential(random));
        gauss[i] = bf16(normal(random));
        amax_l = std::max(amax_l, std::abs(laplace[i]));
        amax_g = std::max(amax_g, std::abs(gauss[i]));
    }
    CHECK(error_of("nvfp4", laplace, amax_l) == Approx(0.01716).epsilon(0.01));
    CHECK(error_of("nvfp4:scale=search", laplace, amax_l) == Approx(0.01360).epsilon(0.01));
    CHECK(error_of("nvfp4", gauss, amax_g) == Approx(0.0090).epsilon(0.01));
    CHECK(error_of("nvfp4:scale=search", gauss, amax_g) == Approx(0.0066).epsilon(0.01));
    // Three codes down and seven up are enough for both.
    CHECK(error_of("nvfp4:scale=search,reach=7", gauss, amax_g) ==
          Approx(error_of("nvfp4:scale=search", gauss, amax_g)).epsilon(1e-3));
}

TEST_CASE("searched recipes have one spelling, and combinations that do not exist are named") {
    const auto spelt = [](const std::string& text) { return to_string(parse_recipe(text)); };
    CHECK(spelt("mxfp4:scale=search,search=mse,reach=all") == "mxfp4:scale=search");
    CHECK(spelt("nvfp4:reach=3,search=mae,scale=search") ==
          "nvfp4:scale=search,search=mae,reach=3");
    CHECK(spelt("mxfp4:search=mae,reach=3") == "mxfp4");
    CHECK(spelt("nvfp4:scale=search-single-level") == "nvfp4:scale=search-single-level");
    CHECK(parse_recipe("nvfp4:scale=search").rule->id == scale::rule_id::search_two_level);
    for (const char* text :
         {"fp8_1x128:scale=search", "mxfp4:scale=search,offset=fp16",
          "mxfp4:scale=search,dialect=torchao", "mxfp4:scale=search,reach=-1",
          "mxfp4:scale=search,search=max", "nvfp4:scale=search,four_over_six=mse",
          "mxfp4:scale=search-single-level"}) {
        CAPTURE(text);
        CHECK_THROWS(parse_recipe(text));
    }
}

TEST_CASE("the best scales of a recipe keep all of it but the scales") {
    const auto best = [](const std::string& text) {
        const auto r = codec::with_best_scales(parse_recipe(text));
        return r ? to_string(*r) : "none";
    };
    CHECK(best("mxfp4:scale=even,block=1x16") == "mxfp4:scale=search,block=1x16");
    CHECK(best("nvfp4:dialect=te") == "nvfp4:scale=search");
    CHECK(best("nvfp4:four_over_six=mae") == "nvfp4:scale=search");
    CHECK(best("nvfp4:dialect=ggml") ==
          "nvfp4:scale=search-single-level,round=nearest-ties-to-zero");
    CHECK(best("mxfp4:scale=search,search=mae,reach=2") == "mxfp4:scale=search");
    CHECK(best("mxfp8:transform=hadamard") == "mxfp8:scale=search,transform=hadamard");
    CHECK(best("mxfp4:offset=fp16") == "none");
    CHECK(best("fp8_1x128") == "none");
    CHECK(best("nvfp4:outer=row,dialect=te") == "nvfp4:scale=search,outer=row");
    CHECK(best("nvfp4:outer=col,block=16x1") == "nvfp4:scale=search,block=16x1,outer=col");
    CHECK(best("nvfp4:outer=32x128") == "nvfp4:scale=search,outer=32x128");
    CHECK(best("nvfp4:outer=given:4") == "nvfp4:scale=search,outer=given:4");
    // Files of te and compressed-tensors hold the inverse.
    CHECK(best("nvfp4:outer=given:4,dialect=te") == "nvfp4:scale=search,outer=given:0.25");
    CHECK(best("nvfp4:outer=given:g.npy,dialect=modelopt") ==
          "nvfp4:scale=search,outer=given:g.npy");
    CHECK(best("nvfp4:outer=given:g.npy,dialect=te") == "none");
    CHECK(best("mxfp4:round=stochastic") == "none");
    CHECK(best("amdfp4") == "nvfp4:scale=search-single-level,scale_format=ue5m3");
}
