// SPDX-License-Identifier: Apache-2.0
// The evidence of a block's largest code about its scale rule. Expected sets are typed from the
// rules: with S the scale, floor leaves a maximum in [4, 8) S for E2M1, ceil in (2, 4] S, rceil in
// (3, 6] S and even in [3.5, 7) S.
#include <cmath>
#include <string>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/studies/rosetta/producible.hpp"
#include "libmx/studies/rosetta/top_frequencies.hpp"
#include "tests/catch.hpp"

using namespace mx;
using rosetta::block_top;
using rosetta::producible;

namespace {

std::vector<int> codes_under(const std::string& recipe, std::uint8_t scale) {
    const producible p(codec::parse_recipe(recipe));
    std::vector<int> codes;
    for (int m = 0; m < 256; ++m) {
        if (p.largest(scale, false).test(static_cast<std::size_t>(m))) codes.push_back(m);
    }
    return codes;
}

using list = std::vector<int>;

}  // namespace

TEST_CASE("the largest code of a block follows from rule and rounding") {
    CHECK(codes_under("mxfp4", 127) == list{6, 7});                // 4, 6
    CHECK(codes_under("mxfp4:scale=ceil", 127) == list{4, 5, 6});  // 2 (from just above), 3, 4
    CHECK(codes_under("mxfp4:scale=rceil", 127) == list{5, 6, 7});
    CHECK(codes_under("mxfp4:scale=even", 127) == list{6, 7});  // 3.5 is a tie that rounds to 4
    CHECK(codes_under("mxfp4:scale=rceil,round=up", 127) == list{6, 7});
    CHECK(codes_under("mxfp4:round=zero", 127) == list{6, 7});
    CHECK(codes_under("mxfp4:scale=ceil,round=zero", 127) == list{4, 5, 6});
    // E4M3: [256, 512) S is binade 256 with its eight values but the NaN code.
    CHECK(codes_under("mxfp8", 127) == list{0x78, 0x79, 0x7a, 0x7b, 0x7c, 0x7d, 0x7e});
    CHECK(codes_under("mxint4:scale=floor", 127) == list{4, 5, 6, 7});
}

TEST_CASE("dialects differ where their scales do") {
    // FBGEMM subtracts 3 for E3M0, so its maxima are in [8, 16) S, not in [16, 32) S.
    CHECK(codes_under("mxfp4_e3m0", 127) == list{7});
    CHECK(codes_under("mxfp4_e3m0:scale=floor,dialect=fbgemm", 127) == list{6, 7});
    // TetraJet's E4M3 reaches 480.
    CHECK(codes_under("mxfp8:dialect=tetrajet", 127).back() == 0x7f);
    // A rounded log2 is early by five float32 below 2^10, just below 4 S, which truncates to 3.
    CHECK(codes_under("mxfp4:round=zero,dialect=microxcaling", 135) == list{5, 6, 7});
    CHECK(codes_under("mxfp4:round=zero,dialect=microxcaling-native", 135) == list{6, 7});
}

TEST_CASE("the smallest scale takes whatever is smaller") {
    CHECK(codes_under("mxfp4", 0) == list{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(codes_under("mxfp4", 254).empty());  // no float32 is that large
    // Zero blocks: microxcaling uses 2^-126 as their maximum.
    CHECK(codes_under("mxint8:dialect=microxcaling", 1).front() == 0);
    CHECK(codes_under("mxint8", 1).front() == 64);
}

TEST_CASE("a block is judged by its largest element of either sign") {
    const producible floor(codec::parse_recipe("mxfp4"));
    CHECK(floor.can_be(127, block_top{6, 2, false}));
    CHECK(floor.can_be(127, block_top{2, 7, false}));
    CHECK_FALSE(floor.can_be(127, block_top{5, 5, false}));
    CHECK_FALSE(floor.can_be(127, block_top{0, 0, false}));
    CHECK(floor.can_be(0, block_top{0, 0, false}));
    CHECK(floor.can_be(255, block_top{7, 0, false}));
    const producible modelopt(codec::parse_recipe("mxfp4:dialect=modelopt"));
    CHECK_FALSE(modelopt.can_be(255, block_top{7, 0, false}));  // it never writes NaN scales
    // -128 beside 127: 1.999 times the scale is the maximum or -2 is.
    const producible full(codec::parse_recipe("mxint8"));
    CHECK(full.can_be(127, block_top{127, 128, false}));
}

TEST_CASE("codes give the extremes of a block") {
    const auto& e2m1 = *format::find_element_format("e2m1");
    const std::vector<std::uint8_t> some{0x1, 0x9, 0xf, 0x4};
    const block_top top = rosetta::top_of(e2m1, some);
    CHECK(top.positive == 4);
    CHECK(top.negative == 7);
    CHECK_FALSE(top.has_nan);
    const auto& int8 = *format::find_element_format("int8");
    const std::vector<std::uint8_t> integers{0x80, 0x7f, 0xff};
    CHECK(rosetta::top_of(int8, integers).negative == 128);
    CHECK(rosetta::top_of(int8, integers).positive == 127);
    const std::vector<std::uint8_t> nan{0xff};
    CHECK(rosetta::top_of(*format::find_element_format("e4m3"), nan).has_nan);
}

TEST_CASE("maxima under one scale are cut where the largest code changes") {
    const auto intervals = [](const char* recipe) {
        return producible(codec::parse_recipe(recipe)).intervals();
    };
    // E2M1: codes 5, 6 and 7 are 3, 4 and 6.
    const auto floor = intervals("mxfp4");
    REQUIRE(floor.size() == 2);
    CHECK(floor[0].code == 6);
    CHECK(floor[0].octaves == Approx(std::log2(5.0 / 4)));
    CHECK(floor[1].code == 7);
    CHECK(floor[1].octaves == Approx(std::log2(8.0 / 5)));
    const auto even = intervals("mxfp4:scale=even");
    REQUIRE(even.size() == 2);
    CHECK(even[0].octaves == Approx(std::log2(5.0 / 3.5)));
    const auto rceil = intervals("mxfp4:scale=rceil");
    REQUIRE(rceil.size() == 3);
    CHECK(rceil[0].code == 5);
    CHECK(rceil[0].octaves == Approx(std::log2(3.5 / 3)));
    CHECK(rceil[2].octaves == Approx(std::log2(6.0 / 5)));
    CHECK(intervals("mxfp4:round=up").empty());  // the sign of the maximum matters
}

TEST_CASE("a code that a recipe uses often and that is not there makes the recipe unlikely") {
    const auto& e2m1 = *format::find_element_format("e2m1");
    // Blocks as `made_by` leaves them, of maxima that are log-normal over some octaves.
    const auto counts_of = [&](const char* made_by, int blocks) {
        const codec::block_params params = codec::params_of(codec::parse_recipe(made_by));
        rosetta::top_counts counts(e2m1);
        for (int i = 0; i < blocks; ++i) {
            double z = -6;  // a sum of twelve, evenly spread ones: nearly normal
            for (int k = 0; k < 12; ++k)
                z += std::fmod((i + 1) * std::sqrt(2.0 + k * k + 3 * k), 1.0);
            const auto x = static_cast<float>(std::exp2(0.8 * z));
            std::uint8_t code = 0;
            codec::block_place place;
            place.cols = 1;
            const float scale =
                codec::quantize_block(params, std::span(&x, 1), place, std::span(&code, 1)).scale;
            counts.add(static_cast<std::uint8_t>(std::ilogb(scale) + 127), {code, 0, false});
        }
        return counts;
    };
    const auto frequencies = [](const char* recipe, const rosetta::top_counts& counts) {
        return rosetta::frequencies_of(producible(codec::parse_recipe(recipe)), counts);
    };
    const auto even = counts_of("mxfp4:scale=even", 2000);
    CHECK(rosetta::evidence_against(frequencies("mxfp4:scale=even", even)) == nullptr);
    const auto under_rceil = frequencies("mxfp4:scale=rceil", even);
    const rosetta::top_frequency* rare = rosetta::evidence_against(under_rceil);
    REQUIRE(rare != nullptr);
    CHECK(rosetta::value_of_top(e2m1, *rare) == 3);
    CHECK(rare->found == 0);
    CHECK(rare->least > 100);
    const auto rceil = counts_of("mxfp4:scale=rceil", 2000);
    CHECK(rosetta::evidence_against(frequencies("mxfp4:scale=rceil", rceil)) == nullptr);
    // Too few blocks to decide.
    const auto few = frequencies("mxfp4:scale=rceil", counts_of("mxfp4:scale=even", 20));
    CHECK(rosetta::evidence_against(few) == nullptr);
}

TEST_CASE("under number scales the largest code is 6, or 4 by four-over-six, but near zero") {
    const auto tops = [](const char* recipe, std::uint8_t scale) {
        return producible(codec::parse_recipe(recipe)).largest(scale, false).to_ulong();
    };
    constexpr unsigned long zero = 1, two = 1 << 4, three = 1 << 5, four = 1 << 6, six = 1 << 7;
    for (const char* recipe : {"nvfp4", "nvfp4:dialect=te", "nvfp4:dialect=torchao",
                               "nvfp4:dialect=ggml", "amdfp4", "amdfp4:dialect=quark"}) {
        CAPTURE(recipe);
        CHECK(tops(recipe, 0x39) == six);
        // Beyond 2^24 or so ggml's float32 distances are all equal, and the first of them wins.
        const bool ggml = std::string(recipe) == "nvfp4:dialect=ggml";
        CHECK(tops(recipe, 0x7e) == (ggml ? 0xff : six));
    }
    CHECK(tops("nvfp4:four_over_six=mse", 0x39) == (four | six));
    // The smallest scale s is that of maxima from 3 s to 9 s, a zero that of maxima up to 3 s.
    CHECK(tops("nvfp4", 0x01) == (three | four | six));
    CHECK(tops("nvfp4", 0x00) == zero);
    CHECK(tops("nvfp4:four_over_six=mse", 0x01) == (two | three | four | six));
    CHECK(tops("nvfp4:dialect=torchao", 0x07) == 0);
    CHECK((tops("nvfp4:dialect=torchao", 0x08) & (zero | two | six)) == (zero | two | six));
    CHECK(tops("nvfp4:dialect=modelopt", 0x38) == (zero | six));
    CHECK(tops("nvfp4", 0x80) == 0);
}

TEST_CASE("recipes whose bytes cannot be judged are refused") {
    for (const char* text :
         {"mxfp4:round=stochastic", "mxfp4:offset=fp16", "fp8_1x128", "mxfp4:scale=search",
          "nvfp4:scale=search", "nvfp4:round=stochastic"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(producible(codec::parse_recipe(text)), base::error);
    }
}
