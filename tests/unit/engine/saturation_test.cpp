// SPDX-License-Identifier: Apache-2.0
// The closed forms of clamping and saturation, against their published values and the block kernel.
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/clamp_zone.hpp"
#include "libmx/engine/saturation_zone.hpp"
#include "tests/catch.hpp"

using namespace mx;
using codec::parse_recipe;
using engine::block_judge;

namespace {

// The share of log-uniform block maxima that overflow, by recipe: log2 of the zone's ends.
const std::vector<std::pair<std::string, double>> shares{
    {"mxfp4", 0.4150},
    {"mxfp6", 0.0931},
    {"mxfp6_e3m2", 0.1926},
    {"mxfp8", 0.1926},
    {"mxfp8_e5m2", 0.1926},
    {"mxint8", 0.0113},
    {"mxfp4_e3m0", 1},
    {"mxfp4:scale=even", 0.2224},
    {"mxfp6:scale=even", 0.0473},
    {"mxfp6_e3m2:scale=even", 0.0995},
    {"mxfp8_e5m2:scale=even", 0.0995},
    {"mxfp8:scale=even", 0.1468},
    {"mxfp4_e3m0:scale=even", 0.5850},
    {"mxint8:scale=even", 0.0057},
    {"mxfp4:scale=ceil", 0},
    {"mxfp6:scale=ceil", 0},
    {"mxfp6_e3m2:scale=ceil", 0},
    {"mxfp8:scale=ceil", 0},
    {"mxfp8_e5m2:scale=ceil", 0},
    {"mxfp4_e3m0:scale=ceil", 0},
    {"mxfp4:scale=rceil", 0},
    {"mxfp6:scale=rceil", 0},
    {"mxfp6_e3m2:scale=rceil", 0},
    {"mxfp8:scale=rceil", 0},
    {"mxfp8_e5m2:scale=rceil", 0},
    {"mxfp4_e3m0:scale=rceil", 0},
    {"mxint8:scale=ceil", 0},
    {"mxint8:scale=rceil", 0},
};

const std::vector<std::string> elements{"mxfp8",
                                        "mxfp8_e5m2",
                                        "mxfp6",
                                        "mxfp6_e3m2",
                                        "mxfp4",
                                        "mxfp4_e3m0",
                                        "mxint8",
                                        "mxint4",
                                        "mxint4:element=int2",
                                        "mxint4:element=int3",
                                        "mxint4:element=int7"};
const std::vector<std::string> rules{"floor",   "ceil",     "even",         "rceil",
                                     "nearest", "enhanced", "ceil-div-max", "floor-bump"};

std::string with(const std::string& recipe, const std::string& key) {
    return recipe + (recipe.find(':') == std::string::npos ? ":" : ",") + key;
}

// Blocks with magnitudes close together, or exactly at the threshold of their verdict.
class tight_blocks {
  public:
    explicit tight_blocks(unsigned seed) : random_(seed) {}

    std::vector<float> next(const block_judge& judge) {
        const int exponent = below(5) == 0 ? below(250) - 140 : below(8) - 4;
        const float top = std::ldexp(1 + uniform(), exponent);
        // The widest blocks span little more than an octave.
        const float width = std::ldexp(uniform(), -below(8));
        std::vector<float> x(static_cast<std::size_t>(2 + below(31)));
        const bool both_signs = below(2) == 0;
        for (float& v : x) {
            v = top * (1 - width * uniform() * 0.6f);
            if (below(6) == 0) v = landmark(judge, exponent);
            if (below(20) == 0) v = 0;
            if (both_signs && below(2) == 0) v = -v;
        }
        return x;
    }

  private:
    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    float uniform() { return std::uniform_real_distribution<float>(0, 1)(random_); }

    // A threshold as it may appear in the binade, or a neighbour of it.
    float landmark(const block_judge& judge, int exponent) {
        const auto& t = below(2) == 0 ? judge.positive() : judge.negative();
        const double mark = below(2) == 0 ? t.at : t.largest;
        const float v = std::ldexp(static_cast<float>(mark), exponent - std::ilogb(mark));
        const float towards = below(2) == 0 ? 0.0f : INFINITY;
        return below(3) == 0 ? v : std::nextafter(v, towards);
    }

    std::mt19937 random_;
};

// Counts the blocks that the kernel saturates and overflows; every verdict must agree with it.
std::pair<int, int> agree(const std::string& text, int count, unsigned seed) {
    const codec::recipe r = parse_recipe(text);
    const codec::block_params p = codec::params_of(r);
    const auto judge = block_judge::of(r);
    REQUIRE(judge);
    tight_blocks blocks(seed);
    int wrong = 0, saturated = 0, overflowing = 0;
    std::vector<std::uint8_t> codes(64);
    for (int i = 0; i < count; ++i) {
        const std::vector<float> x = blocks.next(*judge);
        const auto s = codec::quantize_block(p, x, {}, std::span(codes).first(x.size()));
        if (!s.is.eligible) continue;
        const bool overflows = s.count.overflow == s.count.nonzero;
        const engine::block_verdict v = judge->judge(engine::extremes_of(x));
        wrong += v.saturates != s.is.saturated || v.overflows != overflows;
        saturated += s.is.saturated;
        overflowing += overflows;
        const double nearness = judge->nearness(engine::extremes_of(x));
        wrong += s.is.saturated ? nearness < 1 : nearness > 1;
    }
    CAPTURE(text);
    CHECK(wrong == 0);
    return {saturated, overflowing};
}

}  // namespace

TEST_CASE("clamp shares of log-uniform maxima are the published ones") {
    for (const auto& [recipe, share] : shares) {
        CAPTURE(recipe);
        CHECK(codec::clamp_zone_of(parse_recipe(recipe)).share() == Approx(share).margin(0.00005));
    }
}

TEST_CASE("the kernel clamps the share of log-uniform maxima that the closed form says") {
    constexpr int strata = 1 << 14;
    for (const auto& [recipe, share] : shares) {
        CAPTURE(recipe);
        const codec::block_params p = codec::params_of(parse_recipe(recipe));
        int overflowing = 0;
        for (int i = 0; i < strata; ++i) {
            // One maximum per stratum of a binade, with a smaller value.
            const double log2 = (i + 0.5) / strata;
            const float x[2] = {static_cast<float>(std::exp2(log2 - 7)), -0.001f};
            std::uint8_t codes[2];
            overflowing += codec::quantize_block(p, x, {}, codes).count.overflow > 0;
        }
        const double closed = codec::clamp_zone_of(parse_recipe(recipe)).share();
        CHECK(std::abs(overflowing / double{strata} - closed) <= 2.0 / strata);
    }
}

TEST_CASE("saturation begins at the last rounding midpoint") {
    const auto e4m3 = block_judge::of(parse_recipe("mxfp8"));
    REQUIRE(e4m3);
    CHECK(e4m3->positive().at == 432);  // between 416 and 448: the tie rounds to 448, an even code
    CHECK(e4m3->positive().including);
    CHECK(e4m3->positive().largest == 448);
    REQUIRE(e4m3->zone());
    CHECK(e4m3->zone()->from == 0.84375);
    CHECK(e4m3->zone()->including);
    CHECK(e4m3->zone()->to == 1);
    CHECK(e4m3->zone()->becomes == 0.875);

    const auto e2m1 = block_judge::of(parse_recipe("mxfp4"));
    REQUIRE(e2m1);
    CHECK(e2m1->positive().at == 5);  // between 4 and 6: the tie rounds to 4
    CHECK_FALSE(e2m1->positive().including);
    REQUIRE(e2m1->zone());
    CHECK(e2m1->zone()->from == 0.625);
    CHECK_FALSE(e2m1->zone()->including);
    CHECK(e2m1->zone()->becomes == 0.75);

    const auto up = block_judge::of(parse_recipe("mxfp4:round=away"));
    CHECK(up->positive().including);
    const auto even = block_judge::of(parse_recipe("mxfp8:scale=even"));
    CHECK(even->zone()->to == 1.9375 / 2);
    CHECK_FALSE(block_judge::of(parse_recipe("mxfp8:scale=rceil"))->zone());
}

TEST_CASE("the verdict from minimum and maximum is the kernel's") {
    int saturated = 0, overflowing = 0;
    for (const std::string& element : elements) {
        for (const std::string& rule : rules) {
            const auto [s, o] = agree(with(element, "scale=" + rule), 400, 1);
            saturated += s;
            overflowing += o;
        }
    }
    // The blocks are of both kinds.
    CHECK(saturated > 2000);
    CHECK(overflowing > 500);
}

TEST_CASE("the verdict holds for every rounding, and for integers of either range") {
    for (const char* rounding : {"away", "zero", "up", "down", "nearest-ties-to-zero"}) {
        for (const char* element : {"mxfp8", "mxfp4", "mxfp4_e3m0", "mxint8", "mxint4"}) {
            agree(with(element, std::string("round=") + rounding), 300, 2);
        }
    }
    for (const char* range : {"full", "symmetric"}) {
        for (const char* emax : {"0", "log2max", "1"}) {
            for (const char* element : {"mxint8", "mxint4"}) {
                agree(with(element, std::string("int_min=") + range + ",int_emax=" + emax), 300, 3);
            }
        }
    }
    agree("mxfp4_e3m0:ties=even", 300, 4);
}

TEST_CASE("the largest codes of a full-range integer differ by sign") {
    const auto judge = block_judge::of(parse_recipe("mxint8:int_min=full"));
    REQUIRE(judge);
    CHECK(judge->signs_matter());
    CHECK(judge->positive().largest == 127.0 / 64);
    CHECK(judge->negative().largest == 2);
    const std::vector<float> positive{1.99f, 1.98f}, negative{-1.99f, -1.98f};
    CHECK(judge->judge(engine::extremes_of(positive)).saturates);
    CHECK_FALSE(judge->judge(engine::extremes_of(negative)).saturates);
    CHECK_FALSE(block_judge::of(parse_recipe("mxint8:int_min=symmetric"))->signs_matter());
    CHECK_FALSE(block_judge::of(parse_recipe("mxfp8"))->signs_matter());
}

TEST_CASE("blocks that are certain to saturate do so under stochastic rounding") {
    const codec::recipe r = parse_recipe("mxfp4:round=stochastic,seed=3");
    const codec::block_params p = codec::params_of(r);
    const auto judge = block_judge::of(r);
    REQUIRE(judge);
    tight_blocks blocks(5);
    int certain = 0, broken = 0, others = 0;
    for (int i = 0; i < 2000; ++i) {
        const std::vector<float> x = blocks.next(*judge);
        std::vector<std::uint8_t> codes(x.size());
        const auto s = codec::quantize_block(p, x, {}, codes);
        if (!s.is.eligible) continue;
        const bool sure = judge->judge(engine::extremes_of(x)).saturates;
        certain += sure;
        broken += sure && !s.is.saturated;
        others += !sure && s.is.saturated;
    }
    CHECK(broken == 0);
    CHECK(certain > 50);
    CHECK(others > 0);
}

TEST_CASE("where minimum and maximum do not decide, there is no judge") {
    for (const char* text : {"mxfp8:offset=fp16", "nvfp4", "fp8_1x128", "mxfp8:dialect=torchao",
                             "mxfp4:scale=stochastic,dialect=fbgemm"}) {
        CAPTURE(text);
        CHECK_FALSE(block_judge::of(parse_recipe(text)));
    }
}

TEST_CASE("blocks of zeros and blocks without a scale get no verdict") {
    const auto judge = block_judge::of(parse_recipe("mxfp8"));
    const std::vector<float> zeros(4, 0.0f), nan{1.0f, NAN}, inf{INFINITY, INFINITY};
    for (const auto& x : {zeros, nan, inf}) {
        const auto v = judge->judge(engine::extremes_of(x));
        CHECK_FALSE(v.saturates);
        CHECK_FALSE(v.overflows);
        CHECK(judge->nearness(engine::extremes_of(x)) == 0);
    }
}
