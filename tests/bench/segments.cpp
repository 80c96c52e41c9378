// SPDX-License-Identifier: Apache-2.0
// Micro-benchmarks for whoever works on a driver: its two steps apart, on one segment that stays in
// the first-level cache. `mx bench` measures what users get.
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
#include "libmx/block/segmentation.hpp"
#include "libmx/pipeline/geometry.hpp"
#include "libmx/pipeline/normal_values.hpp"
#include "libmx/quantize/drivers.hpp"
#include "libmx/quantize/recipe.hpp"

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
    quantize::block_params params;
    std::vector<std::byte> bytes;
    quantize::stored_values values;
    quantize::segment_place place;

    segment(const quantize::recipe& r, tensor::dtype type) : params(quantize::params_of(r)) {
        std::string reason;
        const block::grid grid = pipeline::lay_out({rows, cols}, r, reason)->grid;
        const block::segmentation s = block::segments_of(grid);
        place.tensor_id = base::tensor_id("bench");
        place.row_stride = cols;
        place.rows = std::min(rows, s.rows * grid.block_rows);
        place.cols = std::min(cols, s.cols * grid.block_cols);
        place.block_rows = grid.block_rows;
        place.block_cols = grid.block_cols;
        bytes.resize(rows * cols * static_cast<std::size_t>(tensor::row_of(type).bits / 8));
        pipeline::fill_normal(type, bytes);
        values = {type, bytes.data(), cols};
    }
};

void count(benchmark::State& state, const segment& s) {
    state.SetItemsProcessed(static_cast<std::int64_t>(s.place.elements()) *
                            static_cast<std::int64_t>(state.iterations()));
}

void load(benchmark::State& state, const quantize::driver& d, const segment& s) {
    quantize::block_run run;
    for (auto _ : state) {
        d.load(s.values, s.place, run);
        benchmark::DoNotOptimize(run.x);
    }
    count(state, s);
}

// Random draws are part of it: a run that was loaded anew has none.
void quantize_only(benchmark::State& state, const quantize::driver& d, const segment& s,
                   quantize::detail wanted, bool parts) {
    quantize::block_run run;
    quantize::block_details details;
    details.wanted = wanted;
    details.parts = parts;
    d.load(s.values, s.place, run);
    for (auto _ : state) {
        run.draws = nullptr;
        benchmark::DoNotOptimize(d.quantize(s.params, run, details));
    }
    count(state, s);
}

void add(const quantize::driver& d, const std::string& recipe, tensor::dtype type) {
    const auto s = std::make_shared<const segment>(quantize::parse_recipe(recipe), type);
    const std::string driver(d.name);
    const std::string of = recipe + "/" + std::string(tensor::row_of(type).name);
    benchmark::RegisterBenchmark((driver + "/load/" + of).c_str(),
                                 [&d, s](benchmark::State& state) { load(state, d, *s); });
    if (type != tensor::dtype::bf16) return;  // quantizing begins with float32, whatever was loaded
    for (const auto& [what, wanted, parts] :
         {std::tuple{"/quantize/", quantize::detail::none, false},
          std::tuple{"/quantize with codes/", quantize::detail::codes, false},
          std::tuple{"/quantize with parts/", quantize::detail::none, true}}) {
        benchmark::RegisterBenchmark((driver + what + recipe).c_str(),
                                     [&d, s, w = wanted, p = parts](benchmark::State& state) {
                                         quantize_only(state, d, *s, w, p);
                                     });
    }
}

}  // namespace

int main(int argc, char** argv) {
    for (const quantize::driver& d : quantize::drivers()) {
        if (!d.available()) continue;
        for (const char* recipe : recipes) {
            for (const tensor::dtype type : types) add(d, recipe, type);
        }
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
