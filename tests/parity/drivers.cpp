// SPDX-License-Identifier: Apache-2.0
// Every backend against the reference: all it delivers, byte for byte.
#include "libmx/codec/simd/kernels.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/catch.hpp"
#include "tests/parity/segments.hpp"

namespace {

using mx::codec::detail;
using mx::codec::recipe;
using mx::tensor::dtype;
using namespace mx::tests;

std::string with(const std::string& preset, const std::string& keys) {
    return preset + (keys.empty() ? "" : ":" + keys.substr(1));
}

std::vector<std::string> element_keys() {
    std::vector<std::string> out;
    for (const auto& f : mx::format::element_formats) {
        const std::string key = ",element=" + std::string(f.name);
        out.push_back(key);
        if (f.floating()) {
            if (f.mantissa_bits == 0) out.push_back(key + ",ties=even");
            continue;
        }
        for (const char* more : {",int_min=full,int_emax=1", ",int_min=symmetric,int_emax=log2max",
                                 ",int_min=full,int_emax=log2max", ",int_min=symmetric"}) {
            out.push_back(key + more);
        }
    }
    return out;
}

}  // namespace

TEST_CASE("every recipe of row blocks") {
    std::uint64_t seed = 1;
    std::size_t compared = 0;
    for (const std::string& element : element_keys()) {
        for (const auto& rule : mx::scale::scale_rules) {
            // Dialect ocp has no random scales; searched ones are among the dialect blocks.
            if (rule.scale_format != "e8m0" || rule.name == "stochastic" ||
                mx::scale::is_search(rule.id)) {
                continue;
            }
            for (const char* round :
                 {"rtne", "away", "nearest-ties-to-zero", "zero", "up", "down", "stochastic,seed=5",
                  "stochastic,random_bits=1", "stochastic,random_bits=11"}) {
                if (element.find("ties") != std::string::npos && round != std::string("rtne"))
                    continue;
                for (const char* offset : {"", ",offset=fp16", ",offset=fp16,range=half"}) {
                    const recipe r = mx::codec::parse_recipe(with(
                        "mxfp8",
                        element + ",scale=" + std::string(rule.name) + ",round=" + round + offset));
                    const dtype type = std::array{dtype::f32, dtype::bf16, dtype::f16}[seed % 3];
                    const auto m =
                        make_matrix(type, 2, 32 * 33 + 9, seed % 2 == 0 ? usual_kinds : every_kind,
                                    *r.element, seed);
                    ++seed;
                    CAPTURE(mx::codec::to_string(r), static_cast<int>(type));
                    const detail wanted = seed % 8 < 4 ? detail::stats : detail::codes;
                    CHECK(disagreement(m, r, wanted, seed % 4 < 2) == "");
                    ++compared;
                }
            }
        }
    }
    CHECK(compared > 3000);
}

TEST_CASE("every kind of block alone") {
    std::uint64_t seed = 1000;
    for (const char* text : {"mxfp4", "mxfp8:scale=even", "mxint8", "mxint4:scale=ceil,int_emax=1",
                             "mxfp6:round=stochastic", "mxfp4_e3m0:round=up", "mxint8:round=down",
                             "mxfp8_e5m2:offset=fp16"}) {
        const recipe r = mx::codec::parse_recipe(text);
        for (const block_kind kind : block_kinds) {
            for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16}) {
                const auto m = make_matrix(type, 5, 32 * 33, {kind}, *r.element, ++seed);
                CAPTURE(text, name_of(kind), static_cast<int>(type));
                CHECK(disagreement(m, r, detail::none, false) == "");
                CHECK(disagreement(m, r, detail::none, true) == "");
                CHECK(disagreement(m, r, detail::scales, false) == "");
                CHECK(disagreement(m, r, detail::stats, false) == "");
            }
        }
    }
}

TEST_CASE("every block shape") {
    std::uint64_t seed = 5000;
    for (const char* shape : {"1x32",   "1x16", "1x2",   "1x7",   "1x8",   "1x48",  "1x64", "1x100",
                              "1x5000", "32x1", "16x1",  "5x1",   "48x1",  "200x1", "4x4",  "8x8",
                              "2x8",    "3x5",  "16x16", "32x32", "64x96", "2x64"}) {
        for (const char* preset : {"mxfp4", "mxfp8:round=stochastic", "mxint8:round=away",
                                   "mxfp6:offset=fp16", "mxfp6:offset=fp16,round=stochastic"}) {
            const std::string text(preset);
            const char* join = text.find(':') == std::string::npos ? ":" : ",";
            const recipe r = mx::codec::parse_recipe(text + join + "block=" + shape);
            for (const auto& [rows, cols] : {std::pair{1, 1},
                                             {1, 4099},
                                             {67, 131},
                                             {130, 33},
                                             {64, 256},
                                             {257, 3},
                                             {40, 18}}) {
                const dtype type = std::array{dtype::f32, dtype::bf16, dtype::f16}[seed % 3];
                const auto m = make_matrix(
                    type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols),
                    seed % 4 == 0 ? every_kind : usual_kinds, *r.element, seed);
                ++seed;
                CAPTURE(mx::codec::to_string(r), rows, cols, static_cast<int>(type));
                const auto wanted = static_cast<detail>(seed % 4);
                CHECK(disagreement(m, r, wanted, seed % 5 < 3) == "");
            }
        }
    }
}

TEST_CASE("vector drivers do what the reference leaves to them") {
    // Guards against a smaller domain of takes() or the kernels, which the tests above would not
    // notice.
    for (const char* text :
         {"mxfp4", "mxfp8:scale=ceil", "mxfp8_e5m2:scale=even", "mxfp6:scale=rceil", "mxint8",
          "mxint4:round=stochastic", "mxfp4_e3m0:round=zero", "mxfp8:block=32x1"}) {
        CAPTURE(text);
        CHECK(mx::codec::simd::takes(mx::codec::params_of(mx::codec::parse_recipe(text))));
    }
}

TEST_CASE("each vector driver has kernels of its own width") {
    using mx::codec::simd::target;
    for (const auto& [t, name, lanes] :
         {std::tuple{target::sse4, "sse4", 4}, std::tuple{target::avx2, "avx2", 8},
          std::tuple{target::avx512, "avx512", 16}, std::tuple{target::neon, "neon", 4}}) {
        const auto* kernels = mx::codec::simd::kernels_for(t);
        CAPTURE(name);
        if (kernels != nullptr) CHECK(kernels->float_lanes() == lanes);
        bool listed = false;
        for (const auto& d : mx::codec::backends()) {
            if (d.name != name) continue;
            listed = true;
            CHECK(d.available() == mx::codec::simd::supported(t));
        }
        CHECK(listed);
    }
}
