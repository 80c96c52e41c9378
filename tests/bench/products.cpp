// SPDX-License-Identifier: Apache-2.0
// The parts of an emulated product: unpacking the operands, and computing one tile.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "libmx/bench/product_throughput.hpp"
#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/backends.hpp"

namespace {

using namespace mx;

constexpr std::size_t depth = 2048;

struct product {
    gemm::accumulator model;
    gemm::operand a, b;

    explicit product(const char* name) : model(gemm::parse_accumulator(name)) {
        const bench::product_operands of = bench::operands_for(model);
        a = bench::make_operand(of, 32, depth, 1);
        b = bench::make_operand(of, 64, depth, 2);
    }
};

void unpack(benchmark::State& state, const gemm::backend& backend, const product& p) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(backend.make(p.a, p.b, p.model, 1));
    }
    const auto elements = static_cast<std::int64_t>((p.a.rows + p.b.rows) * depth);
    state.SetItemsProcessed(elements * static_cast<std::int64_t>(state.iterations()));
}

void walk(benchmark::State& state, const gemm::backend& backend, const product& p) {
    const auto engine = backend.make(p.a, p.b, p.model, 1);
    const gemm::tile where{0, p.a.rows, 0, p.b.rows};
    const gemm::step_range steps{0, depth / gemm::step_length(p.model), false};
    std::vector<std::uint32_t> acc(where.rows * where.cols);
    for (auto _ : state) {
        engine->walk(where, steps, acc.data());
        benchmark::DoNotOptimize(acc.data());
        benchmark::ClobberMemory();
    }
    const auto multiply_adds = static_cast<std::int64_t>(acc.size() * depth);
    state.SetItemsProcessed(multiply_adds * static_cast<std::int64_t>(state.iterations()));
}

}  // namespace

int main(int argc, char** argv) {
    for (const gemm::backend& backend : gemm::backends()) {
        if (!backend.available()) continue;
        for (const char* model : {"sm100.mxf8f6f4", "sm100.mxf4", "sm100.mxf4nvf4", "sm100.f16",
                                  "sm100.f16.f16acc", "sm100.tf32", "sm90.wgmma.fp8"}) {
            const auto p = std::make_shared<const product>(model);
            const std::string name(backend.name);
            benchmark::RegisterBenchmark(
                (name + "/unpack/" + model).c_str(),
                [&backend, p](benchmark::State& state) { unpack(state, backend, *p); });
            benchmark::RegisterBenchmark(
                (name + "/walk/" + model).c_str(),
                [&backend, p](benchmark::State& state) { walk(state, backend, *p); });
        }
    }
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
