// SPDX-License-Identifier: Apache-2.0
// Micro-benchmarks of CPU kernels: laying out one segment, which stays in the first-level cache,
// and quantizing it. `mx bench` measures the rates that users see.
//
//   mx_benchmarks --benchmark_filter='avx512/quantize/mxfp4'
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "libmx/base/random.hpp"
#include "libmx/bench/normal_values.hpp"
#include "libmx/block/view.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/engine/geometry.hpp"

namespace {

using namespace mx;

constexpr std::uint64_t rows = 128;
constexpr std::uint64_t cols = 4096;

constexpr std::array recipes{
    "mxfp4",
    "mxfp8",
    "mxint8",
    "mxfp4:round=stochastic",
    "mxfp4:block=32x1",
    "mxfp4:block=4x4",
    "mxfp4:offset=fp16",
};
constexpr std::array types{tensor::dtype::bf16, tensor::dtype::f16, tensor::dtype::f32};

// The first segment of a matrix.
struct segment {
    codec::block_params params;
    std::vector<std::byte> bytes;
    codec::stored_values values;
    codec::segment_place place;

    segment(const codec::recipe& r, tensor::dtype type) : params(codec::params_of(r)) {
        std::string reason;
        const block::grid grid = engine::lay_out({rows, cols}, r, reason)->grid;
        const block::segmentation s = block::segments_of(grid);
        place.tensor_id = base::tensor_id("bench");
        place.row_stride = cols;
        place.rows = std::min(rows, s.rows * grid.block_rows);
        place.cols = std::min(cols, s.cols * grid.block_cols);
        place.block_rows = grid.block_rows;
        place.block_cols = grid.block_cols;
        bytes.resize(rows * cols * static_cast<std::size_t>(tensor::row_of(type).bits / 8));
        bench::fill_normal(type, bytes);
        values = {type, bytes.data(), cols};
    }
};

void count(benchmark::State& state, const segment& s) {
    state.SetItemsProcessed(static_cast<std::int64_t>(s.place.elements()) *
                            static_cast<std::int64_t>(state.iterations()));
}

// Without recipes, values are laid out and nothing else.
void run(benchmark::State& state, const codec::backend& b, const segment& s,
         std::span<const codec::recipe_request> recipes) {
    const auto by = b.make_quantizer();
    const codec::placed_segment placed{s.place, 0, 0};
    for (auto _ : state) {
        by->run({s.values, s.place.rows, s.place.cols}, {&placed, 1}, recipes,
                [](std::size_t, std::span<const codec::segment_result> results) {
                    benchmark::DoNotOptimize(results.data());
                });
    }
    count(state, s);
}

void add(const codec::backend& b, const std::string& recipe, tensor::dtype type) {
    const auto s = std::make_shared<const segment>(codec::parse_recipe(recipe), type);
    const std::string backend(b.name);
    const std::string of = recipe + "/" + std::string(tensor::row_of(type).name);
    benchmark::RegisterBenchmark((backend + "/load/" + of).c_str(),
                                 [&b, s](benchmark::State& state) { run(state, b, *s, {}); });
    if (type != tensor::dtype::bf16) return;  // all are quantized from float32
    for (const auto& [what, wanted, parts] :
         {std::tuple{"/quantize/", codec::detail::none, false},
          std::tuple{"/quantize with codes/", codec::detail::codes, false},
          std::tuple{"/quantize with parts/", codec::detail::none, true}}) {
        const codec::recipe_request request{&s->params, wanted, parts};
        benchmark::RegisterBenchmark((backend + what + recipe).c_str(),
                                     [&b, s, request](benchmark::State& state) {
                                         run(state, b, *s, {&request, 1});
                                     });
    }
}

}  // namespace

int main(int argc, char** argv) {
    for (const codec::backend& b : codec::backends()) {
        if (!b.available() || b.is_device()) continue;
        for (const char* recipe : recipes) {
            for (const tensor::dtype type : types) add(b, recipe, type);
        }
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
