// SPDX-License-Identifier: Apache-2.0
// Compares every backend with the reference under dialect recipes: scales that are not
// powers of two, and dialects.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "libmx/base/status.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/simd/kernels.hpp"
#include "tests/catch.hpp"
#include "tests/parity/segments.hpp"

namespace {

using mx::codec::detail;
using mx::codec::recipe;
using mx::tensor::dtype;
using namespace mx::tests;

// Every recipe that a preset, a dialect, a rule, a rounding and an element make together.
std::vector<recipe> dialect_recipes() {
    std::vector<recipe> out;
    for (const char* preset : {"nvfp4", "amdfp4", "fp8_1x128", "mxfp4", "mxfp8"}) {
        for (const auto& by : mx::codec::dialects()) {
            for (const auto& rule : mx::scale::scale_rules) {
                for (const char* more :
                     {"", ",element=e4m3", ",element=e5m2", ",element=e2m3", ",element=e3m2",
                      ",element=e3m0", ",element=e1m2", ",element=int8", ",round=away",
                      ",round=stochastic,seed=3", ",four_over_six=mse", ",four_over_six=mae",
                      ",four_over_six=abs_max"}) {
                    const std::string text = std::string(preset) +
                                             ":dialect=" + std::string(by.name) +
                                             ",scale=" + std::string(rule.name) + more;
                    try {
                        recipe r = mx::codec::parse_recipe(text);
                        const bool plain = mx::codec::params_of(r).ocp;
                        if (!plain && std::ranges::count(out, r) == 0) out.push_back(std::move(r));
                    } catch (const mx::base::error&) {  // not a valid recipe
                    }
                }
            }
        }
    }
    return out;
}

stored_matrix of_floats(std::uint64_t cols, const std::vector<float>& x) {
    stored_matrix m{dtype::f32, x.size() / cols, cols, {}};
    m.bytes.resize(x.size() * sizeof(float));
    std::memcpy(m.bytes.data(), x.data(), m.bytes.size());
    return m;
}

float nudged(float x, int ulps) {
    const auto u = static_cast<std::int64_t>(mx::base::bits_of(x)) + ulps;
    return mx::base::float_from_bits(
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(u, 0, mx::base::f32_infinity - 1)));
}

// The grid's values and the midpoints between them, the one beyond the largest included.
std::vector<double> decisions(const mx::codec::block_params& p) {
    std::vector<double> out;
    double below = 0;
    for (std::uint32_t code = 1; code <= p.element.max_positive; ++code) {
        const auto value = static_cast<double>(p.value[code]);
        out.push_back((below + value) / 2);
        out.push_back(value);
        below = value;
    }
    out.push_back(below + std::ldexp(1.0, std::ilogb(below) - p.element.mantissa_bits - 1));
    return out;
}

// Blocks with elements at the thresholds under the block's own scale, one ulp below, or above.
// `amax` of the next block, of the matrix first.
template <typename Next>
stored_matrix at_decisions(const recipe& r, float most, std::size_t blocks, Next&& next_amax) {
    const auto p = mx::codec::params_of(r, {mx::base::bits_of(most)});
    const auto size = static_cast<std::size_t>(r.block.cols);
    const std::vector<double> points = decisions(p);
    std::vector<float> x{most};
    x.resize(size);
    std::size_t at = 0;
    for (std::size_t b = 1; b < blocks; ++b) {
        const float amax = next_amax(p, b);
        const auto s = mx::codec::choose_scale(p, mx::base::bits_of(amax), p.largest);
        const double scale = mx::codec::float_scale_encoder(p, s).scale();
        x.push_back(amax);
        for (std::size_t i = 1; i < size; ++i, ++at) {
            const auto near = static_cast<float>(scale * points[at / 3 % points.size()]);
            const float v = nudged(near, static_cast<int>(at % 3) - 1);
            x.push_back(std::min(v, amax) * (at % 2 == 0 ? 1.0f : -1.0f));
        }
    }
    return of_floats(size, x);
}

// Four-over-six of dialect te has blocks of at most 16 rows.
bool by_te_in_rows(const std::string& text) {
    return text.find("four_over_six") != std::string::npos &&
           text.find("dialect=te") != std::string::npos;
}

}  // namespace

TEST_CASE("dialect recipes by every backend") {
    std::uint64_t seed = 40000;
    std::size_t by_vectors = 0;
    const auto recipes = dialect_recipes();
    for (const recipe& r : recipes) {
        const bool taken = mx::codec::simd::takes(mx::codec::params_of(r));
        by_vectors += taken ? 1 : 0;
        for (int turn = 0; turn < (taken ? 8 : 1); ++turn) {
            const dtype type = std::array{dtype::f32, dtype::bf16, dtype::f16}[seed % 3];
            const auto& kinds = turn < 4 ? every_kind : usual_kinds;
            const auto m = make_matrix(type, 3, 32 * 47 + 9, kinds, *r.element, ++seed);
            CAPTURE(mx::codec::to_string(r), turn, static_cast<int>(type));
            const auto wanted = static_cast<detail>(turn % 4);
            CHECK(disagreement(m, r, wanted, seed % 2 == 0) == "");
        }
    }
    CHECK(recipes.size() > 100);
    CHECK(by_vectors > 40);
}

TEST_CASE("dialect recipes with every kind of block alone") {
    std::uint64_t seed = 50000;
    for (const char* text : {"nvfp4",
                             "nvfp4:scale=single-level",
                             "nvfp4:dialect=torchao",
                             "nvfp4:dialect=te",
                             "nvfp4:dialect=modelopt",
                             "nvfp4:dialect=compressed-tensors",
                             "fp8_1x128",
                             "fp8_1x128:scale=amax-pow2",
                             "fp8_1x128:dialect=te",
                             "mxfp4:dialect=torchao",
                             "mxfp8:dialect=quark",
                             "mxfp4:dialect=modelopt",
                             "mxfp8:dialect=tetrajet",
                             "nvfp4:dialect=torchao,scale=single-level",
                             "nvfp4:four_over_six=mse",
                             "nvfp4:four_over_six=mae",
                             "nvfp4:four_over_six=abs_max",
                             "amdfp4",
                             "amdfp4:dialect=quark",
                             "amdfp4:dialect=alto",
                             "amdfp4:scale=single-level,dialect=alto",
                             "nvfp4:dialect=alto",
                             "nvfp4:scale_format=ue5m3",
                             "nvfp4:scale_format=ue5m3,dialect=te",
                             "nvfp4:scale_format=ue5m3_inf",
                             "nvfp4:scale_format=ue5m3_inf,four_over_six=mse",
                             "nvfp4:scale_format=ue5m3_inf,scale=search-single-level",
                             "nvfp4:four_over_six=mse,dialect=te",
                             "nvfp4:four_over_six=mae,bound=448,candidates=fp16,dialect=te",
                             "nvfp4:four_over_six=mae,scale_format=ue5m3,dialect=te",
                             "nvfp4:scale=search",
                             "nvfp4:scale=search,search=mae,reach=3",
                             "nvfp4:scale=search-single-level",
                             "amdfp4:scale=search,search=mae",
                             "mxfp4:scale=search",
                             "mxfp8:scale=search,search=mae,reach=1",
                             "nvfp4:element=e1m2",
                             "nvfp4:round=up",
                             "nvfp4:round=down,scale=single-level",
                             "nvfp4:round=stochastic,random_bits=2",
                             "nvfp4:round=stochastic,scale=single-level,random_bits=1",
                             "fp8_1x128:round=stochastic,random_bits=5"}) {
        const recipe r = mx::codec::parse_recipe(text);
        for (const block_kind kind : block_kinds) {
            const dtype type = std::array{dtype::f32, dtype::bf16, dtype::f16}[++seed % 3];
            const auto m = make_matrix(type, 5, 32 * 33, {kind}, *r.element, seed);
            CAPTURE(text, name_of(kind), static_cast<int>(type));
            CHECK(disagreement(m, r, detail::none, false) == "");
            CHECK(disagreement(m, r, detail::stats, true) == "");
        }
    }
}

// Transformer Engine computes a block scale in another order of operations under four-over-six,
// also where the outer scale is the same. Scalings are cached by thread.
TEST_CASE("recipes with the same outer scale do not share scalings") {
    const std::array texts{"nvfp4:dialect=te", "nvfp4:four_over_six=mse,bound=448,dialect=te"};
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        for (const std::size_t i : {seed % 2, 1 - seed % 2}) {
            const recipe r = mx::codec::parse_recipe(texts[i]);
            const auto m = make_matrix(dtype::f32, 5, 32 * 33, every_kind, *r.element, seed);
            CAPTURE(texts[i], seed);
            CHECK(disagreement(m, r, detail::codes, false) == "");
        }
    }
}

TEST_CASE("dialect recipes in every block shape") {
    std::uint64_t seed = 60000;
    for (const char* preset :
         {"nvfp4", "nvfp4:dialect=torchao", "nvfp4:dialect=modelopt", "nvfp4:four_over_six=mse",
          "nvfp4:four_over_six=abs_max", "nvfp4:four_over_six=mse,dialect=te",
          "nvfp4:scale=search,reach=4", "fp8_1x128", "mxfp4:dialect=torchao"}) {
        const std::string text(preset);
        const char* join = text.find(':') == std::string::npos ? ":" : ",";
        for (const char* shape : {"1x16", "1x7", "1x8", "1x32", "1x48", "1x128", "1x5000", "16x1",
                                  "48x1", "4x4", "16x16", "128x128", "3x5"}) {
            if (by_te_in_rows(text) && std::string(shape) == "48x1") continue;
            if (by_te_in_rows(text) && std::string(shape) == "128x128") continue;
            const recipe r = mx::codec::parse_recipe(text + join + "block=" + shape);
            for (const auto& [rows, cols] :
                 {std::pair{1, 1}, {1, 4099}, {67, 131}, {130, 33}, {257, 3}, {40, 18}}) {
                const dtype type = std::array{dtype::f32, dtype::bf16, dtype::f16}[++seed % 3];
                const auto m = make_matrix(
                    type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols),
                    seed % 3 == 0 ? every_kind : usual_kinds, *r.element, seed);
                CAPTURE(mx::codec::to_string(r), rows, cols, static_cast<int>(type));
                CHECK(disagreement(m, r, static_cast<detail>(seed % 4), seed % 5 < 3) == "");
            }
        }
    }
}

TEST_CASE("searched scales of values with many ties") {
    std::mt19937_64 random(9);
    for (const char* text : {"nvfp4:scale=search-single-level", "nvfp4:scale=search",
                             "nvfp4:scale=search-single-level,search=mae", "mxfp4:scale=search",
                             "mxfp4:scale=search,search=mae", "mxfp6:scale=search"}) {
        const recipe r = mx::codec::parse_recipe(text);
        for (int bits = 1; bits < 12; bits += 2) {
            const auto numbers = std::uint64_t{1} << bits;
            std::vector<float> x;
            for (int i = 0; i < 64 * 128; ++i) {
                const auto n = static_cast<float>(random() % numbers) - 1.0f;
                x.push_back(std::ldexp(n, i / 128 % 40 - 20));
            }
            CAPTURE(text, bits);
            CHECK(disagreement(of_floats(128, x), r, detail::codes, true) == "");
            CHECK(disagreement(of_floats(128, x), r, detail::none, false) == "");
        }
    }
}

// Where one scale is 1.5 times the other, they share numbers, and the decision is that of a few
// elements halfway between numbers under the larger scale.
TEST_CASE("four-over-six of elements that become the same number under both scales") {
    std::mt19937_64 random(11);
    constexpr std::array halfway{0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f};
    for (const char* text :
         {"nvfp4:four_over_six=abs_max", "nvfp4:four_over_six=mae", "nvfp4:four_over_six=mse"}) {
        const recipe r = mx::codec::parse_recipe(text);
        for (int turn = 0; turn < 40; ++turn) {
            const float outer = 1.0f + std::ldexp(static_cast<float>(random() % 4096), -12);
            std::vector<float> x(16, 2688.0f * outer);
            while (x.size() < 4096) {
                const auto six = std::ldexp(static_cast<float>(8 + 2 * (random() % 4)),
                                            static_cast<int>(random() % 9) - 4);
                std::vector<float> block(16, 0.0f);
                block[random() % 8] = 6 * six * outer;
                for (std::size_t i = 8; i < 8 + random() % 4; ++i) {
                    const float at = halfway[random() % halfway.size()] * 1.5f * six * outer;
                    block[i] = mx::base::float_from_bits(mx::base::bits_of(at) - 4 +
                                                         static_cast<std::uint32_t>(random() % 9));
                }
                x.insert(x.end(), block.begin(), block.end());
            }
            CAPTURE(text, outer);
            CHECK(disagreement(of_floats(4096, x), r, detail::codes, true) == "");
            CHECK(disagreement(of_floats(4096, x), r, detail::none, false) == "");
        }
    }
}

TEST_CASE("elements at every decision under every block scale of NVFP4") {
    std::mt19937_64 random(7);
    for (const char* text :
         {"nvfp4", "nvfp4:dialect=torchao", "nvfp4:dialect=te", "nvfp4:dialect=modelopt",
          "nvfp4:dialect=compressed-tensors", "nvfp4:scale=single-level",
          "nvfp4:dialect=torchao,scale=single-level"}) {
        const recipe r = mx::codec::parse_recipe(text);
        for (int turn = 0; turn < 12; ++turn) {
            // Tensor scales of few bits have ties; others deviate by less than an ulp of x.
            const float most =
                turn < 4 ? 2688.0f * std::ldexp(1.0f, 5 * turn - 9)
                         : 1.0f + std::ldexp(static_cast<float>(random() % 4096), turn - 12);
            // Three blocks of 15 elements for the 3 x 15 points of a scale.
            const auto m = at_decisions(r, most, 3 * 126 + 1, [&](const auto& p, std::size_t b) {
                const float s = mx::format::decode_scale(*p.scale_format,
                                                         static_cast<std::uint32_t>(b / 3 + 1));
                const float g = r.rule->id == mx::scale::rule_id::two_level ? most / 2688.0f : 1.0f;
                return std::min(most, 6.0f * s * g);
            });
            CAPTURE(text, most);
            CHECK(disagreement(m, r, detail::codes, true) == "");
            CHECK(disagreement(m, r, detail::none, false) == "");
        }
    }
}

TEST_CASE("elements at every decision under random float32 scales") {
    std::mt19937_64 random(8);
    for (const char* text : {"fp8_1x128", "fp8_1x128:element=e5m2", "fp8_1x128:dialect=te",
                             "fp8_1x128:scale=amax-pow2", "fp8_1x128:element=e2m3"}) {
        recipe r;
        try {
            r = mx::codec::parse_recipe(text);
        } catch (const mx::base::error&) {
            continue;
        }
        for (int turn = 0; turn < 4; ++turn) {
            const auto m = at_decisions(r, 1.0f, 400, [&](const auto&, std::size_t) {
                // Quotients with short significands, whose products with a threshold are floats.
                const auto wide = static_cast<std::uint32_t>(random());
                const std::uint32_t mask = turn == 0 ? 0x00700000u : 0x007fffffu;
                const std::uint32_t field = turn == 3 ? wide >> 23 & 0xfeu : 120u + (wide >> 29);
                return mx::base::float_from_bits((field << 23) | (wide & mask));
            });
            CAPTURE(text, turn);
            CHECK(disagreement(m, r, detail::codes, true) == "");
            CHECK(disagreement(m, r, detail::none, false) == "");
        }
    }
}

TEST_CASE("elements at every decision of dialects with power-of-two scales") {
    std::mt19937_64 random(10);
    for (const char* text :
         {"mxfp4:dialect=microxcaling", "mxfp8:dialect=microxcaling", "mxfp6:dialect=microxcaling",
          "mxfp8:dialect=microxcaling-native", "mxfp8:dialect=microxcaling-native,round=zero",
          "mxint8:dialect=microxcaling", "mxint8:dialect=microxcaling-native",
          "mxint4:dialect=microxcaling", "mxfp4:dialect=fbgemm", "mxfp4:dialect=fbgemm,scale=ceil",
          "mxfp4:dialect=ggml", "mxfp4:dialect=modelopt", "mxfp4:dialect=amd-hip",
          "mxfp8:dialect=amd-hip", "mxfp8_e5m2:dialect=amd-hip", "mxfp8:dialect=torchao",
          "mxfp8:dialect=tetrajet"}) {
        const recipe r = mx::codec::parse_recipe(text);
        const auto p = mx::codec::params_of(r);
        CAPTURE(text);
        REQUIRE(mx::codec::simd::takes(p));
        // Numbers, midpoints, and quotients so small that some arithmetic wraps around or rounds.
        std::vector<double> points = decisions(p);
        for (const double small : {0x1p-9, 0x1p-10, 0x1p-12, 0x1p-30, 0x1p-126, 0x1p-149, 0.0}) {
            points.push_back(small * points[1]);
        }
        for (const int exponent : {0, 1, -20, 90, 120, -100}) {
            std::vector<float> x;
            for (std::size_t b = 0; b < 400; ++b) {
                const auto wide = static_cast<std::uint32_t>(random());
                const float amax = std::ldexp(
                    mx::base::float_from_bits(0x3f800000u | (wide & 0x007fffffu)), exponent);
                const auto s = mx::codec::dialect_scale(p, mx::base::bits_of(amax));
                x.push_back(amax);
                for (std::size_t i = 1; i < 32; ++i) {
                    const double point = points[random() % points.size()];
                    // Few small ones, so that vector kernels get most blocks.
                    const double at = b % 4 != 0 ? std::max(point, points[0]) : point;
                    const auto near = static_cast<float>(static_cast<double>(s.value) * at);
                    const float v = nudged(near, static_cast<int>(random() % 5) - 2);
                    x.push_back(std::min(v, amax) * (random() % 2 == 0 ? 1.0f : -1.0f));
                }
            }
            const stored_matrix m = of_floats(32, x);
            CAPTURE(exponent);
            CHECK(disagreement(m, r, detail::codes, true) == "");
            CHECK(disagreement(m, r, detail::none, false) == "");
            CHECK(disagreement(m, r, detail::stats, true) == "");
        }
    }
}

TEST_CASE("the scale of a block follows from its code and what its rule saw") {
    std::uint64_t seed = 70000;
    for (const recipe& r : dialect_recipes()) {
        if (mx::codec::bumps_positions(r)) continue;
        const auto m = make_matrix(dtype::f32, 1, 32 * 42, every_kind, *r.element, ++seed);
        const auto cols = static_cast<std::uint64_t>(r.block.cols);
        const auto p = mx::codec::params_of(r, {mx::base::bits_of(3.0f)});
        const mx::codec::recipe_request asked{&p, detail::stats};
        const mx::codec::placed_segment all{{77, 0, m.cols, 1, m.cols, 1, cols}, 0, 0};
        std::size_t blocks = 0;
        mx::codec::backend_named("scalar").make_quantizer()->run(
            {{m.type, m.bytes.data(), m.cols}, 1, m.cols}, {&all, 1}, {&asked, 1},
            [&](std::size_t, std::span<const mx::codec::segment_result> results) {
                const mx::codec::block_results& d = results.front().of_blocks;
                for (std::size_t b = 0; b < d.blocks; ++b, ++blocks) {
                    CAPTURE(mx::codec::to_string(r), b);
                    CHECK(mx::base::bits_of(mx::codec::scale_of_block(p, d, b)) ==
                          mx::base::bits_of(d.stats[b].scale));
                }
            });
        CHECK(blocks > 0);
    }
}

TEST_CASE("what people use has vector kernels") {
    for (const char* text : {"nvfp4",
                             "nvfp4:scale=single-level",
                             "nvfp4:block=16x16",
                             "nvfp4:dialect=torchao",
                             "nvfp4:four_over_six=mse",
                             "nvfp4:four_over_six=mae",
                             "nvfp4:four_over_six=abs_max",
                             "nvfp4:dialect=te",
                             "nvfp4:dialect=modelopt",
                             "nvfp4:dialect=compressed-tensors",
                             "nvfp4:outer=row",
                             "nvfp4:four_over_six=mse,dialect=te",
                             "nvfp4:scale=search",
                             "mxfp4:scale=search",
                             "nvfp4:scale_format=ue5m3",
                             "nvfp4:scale_format=ue5m3,dialect=te",
                             "nvfp4:scale_format=ue5m3,dialect=alto",
                             "nvfp4:scale_format=ue5m3_inf",
                             "amdfp4",
                             "amdfp4:block=1x32,dialect=quark",
                             "amdfp4:scale=single-level,dialect=alto",
                             "fp8_1x128",
                             "fp8_1x128:dialect=te",
                             "fp8_1x128:scale=amax-pow2",
                             "fp8_128x128",
                             "mxfp4:dialect=torchao",
                             "mxfp8:dialect=torchao",
                             "mxfp8:dialect=te",
                             "mxfp8:dialect=nvidia",
                             "mxfp4:dialect=microxcaling",
                             "mxfp8:dialect=microxcaling",
                             "mxfp4:dialect=ggml",
                             "mxfp8:dialect=amd-hip",
                             "mxfp4:dialect=quark",
                             "mxfp4:dialect=compressed-tensors"}) {
        CAPTURE(text);
        CHECK(mx::codec::simd::takes(mx::codec::params_of(mx::codec::parse_recipe(text))));
    }
}
