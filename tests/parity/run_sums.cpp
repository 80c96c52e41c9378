// SPDX-License-Identifier: Apache-2.0
// Sums over whole runs of vector kernels (libmx/codec/simd/sums.cpp) against the reference, for
// runs of every range: those that lanes bear, those just beyond, and those that fill a lane.
#include <cmath>
#include <cstring>
#include <random>

#include "libmx/codec/simd/kernels.hpp"
#include "tests/catch.hpp"
#include "tests/parity/segments.hpp"

namespace {

using mx::codec::detail;
using mx::tensor::dtype;
using namespace mx::tests;

constexpr std::size_t cols = 4096;

stored_matrix of_row(dtype type, const std::vector<float>& x) {
    stored_matrix m{type, 1, x.size(), {}};
    for (const float v : x) {
        const std::uint32_t bits = mx::base::bits_of(v);
        const std::size_t size = type == dtype::f32 ? 4 : 2;
        const auto* const bytes = reinterpret_cast<const std::byte*>(&bits) + (4 - size);
        m.bytes.insert(m.bytes.end(), bytes, bytes + size);
    }
    return m;
}

// Numbers whose exponents spread over `span` binades, both ends among them, all mantissas full
// where `full` says so.
std::vector<float> spread(int span, bool full, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<float> x(cols);
    for (std::size_t i = 0; i < cols; ++i) {
        const auto r = random();
        const int below = i == 7 ? span : i % 32 == 0 ? 0 : static_cast<int>(r % (span + 1u));
        const auto mantissa = full ? 0x7fffffu : static_cast<std::uint32_t>(r >> 40 & 0x7fffffu);
        const float magnitude =
            std::ldexp(mx::base::float_from_bits(mx::base::bits_of(1.0f) | mantissa), 3 - below);
        x[i] = !full && (r >> 32 & 1u) != 0 ? -magnitude : magnitude;
    }
    return x;
}

constexpr const char* recipes[] = {"mxfp4",
                                   "mxfp8",
                                   "mxfp8_e5m2",
                                   "mxint8",
                                   "mxfp4:block=1x128",
                                   "mxfp4:round=stochastic,seed=5",
                                   "mxfp8:round=up",
                                   "nvfp4",
                                   "nvfp4:scale=single-level",
                                   "nvfp4:round=stochastic,seed=5",
                                   "nvfp4:round=stochastic,seed=5,random_bits=8",
                                   "nvfp4:four_over_six=mse",
                                   "nvfp4:dialect=torchao",
                                   "nvfp4:dialect=te",
                                   "nvfp4:block=16x16",
                                   "fp8_1x128",
                                   "fp8_1x128:round=stochastic,seed=5",
                                   "fp8_128x128",
                                   "mxfp4:dialect=torchao"};

}  // namespace

TEST_CASE("sums of runs of every range by every backend") {
    std::uint64_t seed = 91000;
    for (const char* text : recipes) {
        const mx::codec::recipe r = mx::codec::parse_recipe(text);
        for (const int span : {0, 1, 3, 7, 12, 16, 18, 19, 20, 21, 22, 23, 24, 30, 41, 60}) {
            for (const dtype type : {dtype::f32, dtype::bf16}) {
                auto x = spread(span, span % 3 == 0, ++seed);
                // Blocks for the reference among the others.
                if (span % 2 == 1) x[1029] = INFINITY;
                if (span % 4 == 3) x[2050] = 0x1p-140f;
                CAPTURE(text, span, static_cast<int>(type));
                CHECK(disagreement(of_row(type, x), r, detail::none, seed % 4 == 0) == "");
            }
        }
    }
}

TEST_CASE("lanes bear the range of usual runs and no wide one") {
    using mx::codec::simd::target;
    for (const target t : {target::sse4, target::avx2, target::avx512, target::neon}) {
        if (!mx::codec::simd::supported(t)) continue;
        const auto* const k = mx::codec::simd::kernels_for(t);
        if (k == nullptr) continue;
        const auto taken = [&](dtype type, int span) {
            const stored_matrix m = of_row(type, spread(span, false, 5));
            mx::codec::block_run run;
            k->load({type, m.bytes.data(), cols}, {77, 0, cols, 1, cols, 1, 32}, run);
            return k->sum_run(run);
        };
        CAPTURE(static_cast<int>(t));
        CHECK(taken(dtype::f32, 18));
        CHECK(!taken(dtype::f32, 23));
        CHECK(taken(dtype::bf16, 34));
        CHECK(!taken(dtype::bf16, 40));
    }
}
