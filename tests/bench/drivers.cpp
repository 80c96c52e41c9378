// SPDX-License-Identifier: Apache-2.0
// One segment in the first-level cache: what each step of each driver costs.
//   cmake --build --preset release --target mx_micro_benchmarks
//   build/release/tests/bench/mx_micro_benchmarks --benchmark_filter=avx512
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/random.hpp"
#include "libmx/quantize/drivers.hpp"
#include "libmx/quantize/recipe.hpp"

namespace {

using mx::quantize::driver;

constexpr std::uint64_t rows = 128;
constexpr std::uint64_t cols = 128;

// Sums of uniform numbers: near enough to weights.
std::vector<std::uint16_t> bfloats() {
    std::vector<std::uint16_t> out(rows * cols);
    for (std::size_t i = 0; i < out.size(); ++i) {
        float sum = 0;
        for (std::uint64_t k = 0; k < 4; ++k) {
            const std::uint32_t draw = mx::base::random_u32({1, 2}, 4 * i + k);
            sum += static_cast<float>(draw >> 8) * 0x1p-24f - 0.5f;
        }
        out[i] = static_cast<std::uint16_t>(mx::base::bits_of(0.02f * sum) >> 16);
    }
    return out;
}

// As much of the matrix as one segment of the recipe's blocks holds.
mx::quantize::segment_place place_of(const mx::quantize::recipe& r) {
    mx::quantize::segment_place p{1, 0, cols, 1, cols, 1, 1};
    p.block_rows = static_cast<std::uint64_t>(r.block.rows);
    p.block_cols = static_cast<std::uint64_t>(r.block.cols);
    p.rows = 4096 / cols;
    return p;
}

void load(benchmark::State& state, const driver* d, const std::string& text) {
    const auto values = bfloats();
    const mx::quantize::stored_values stored{mx::tensor::dtype::bf16,
                                             std::as_bytes(std::span(values)).data(), cols};
    const auto place = place_of(mx::quantize::parse_recipe(text));
    mx::quantize::block_run run;
    for (auto _ : state) d->load(stored, place, run);
    state.SetItemsProcessed(static_cast<std::int64_t>(place.elements()) * state.iterations());
}

void quantize(benchmark::State& state, const driver* d, const std::string& text) {
    const auto values = bfloats();
    const mx::quantize::stored_values stored{mx::tensor::dtype::bf16,
                                             std::as_bytes(std::span(values)).data(), cols};
    const mx::quantize::recipe r = mx::quantize::parse_recipe(text);
    const auto params = mx::quantize::params_of(r);
    const auto place = place_of(r);
    mx::quantize::block_run run;
    mx::quantize::block_details details;
    d->load(stored, place, run);
    for (auto _ : state) {
        run.has_x2 = false;
        run.draws = nullptr;
        benchmark::DoNotOptimize(d->quantize(params, run, details));
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(place.elements()) * state.iterations());
}

}  // namespace

int main(int argc, char** argv) {
    for (const driver& d : mx::quantize::drivers()) {
        if (!d.available()) continue;
        for (const char* shape : {"mxfp4", "mxfp4:block=32x1", "mxfp4:block=4x4"}) {
            benchmark::RegisterBenchmark(
                (std::string("load/") + std::string(d.name) + "/" + shape).c_str(), load, &d,
                std::string(shape));
        }
        for (const char* text :
             {"mxfp4", "mxfp8:scale=even", "mxint8", "mxfp4:block=1x16", "mxfp4:block=32x1",
              "mxfp4:round=up", "mxfp4:round=stochastic", "mxfp4:offset=fp16"}) {
            benchmark::RegisterBenchmark(
                (std::string("quantize/") + std::string(d.name) + "/" + text).c_str(), quantize, &d,
                std::string(text));
        }
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
