// SPDX-License-Identifier: Apache-2.0
// Compares the products of the training lab with sgemm of the installed BLAS, one thread each. For
// OpenBLAS set OPENBLAS_NUM_THREADS=1.
#include <benchmark/benchmark.h>
#include <cblas.h>

#include <cstdint>
#include <vector>

#include "libmx/lab/product.hpp"

namespace {

struct matrices {
    std::size_t m, n, k;
    std::vector<float> a, b, c;

    explicit matrices(const benchmark::State& state)
        : m(static_cast<std::size_t>(state.range(0))),
          n(static_cast<std::size_t>(state.range(1))),
          k(static_cast<std::size_t>(state.range(2))),
          a(m * k, 1.25f),
          b(n * k, 0.75f),
          c(m * n) {}
    void done(benchmark::State& state) const {
        state.SetItemsProcessed(static_cast<std::int64_t>(m * n * k) *
                                static_cast<std::int64_t>(state.iterations()));
    }
};

void chain(benchmark::State& state) {
    matrices x(state);
    mx::lab::execution_context on(1);
    for (auto _ : state) {
        mx::lab::multiply(on, {x.a.data(), x.m, x.k}, {x.b.data(), x.n, x.k}, x.c.data());
        benchmark::ClobberMemory();
    }
    x.done(state);
}

void blas(benchmark::State& state) {
    matrices x(state);
    const int m = static_cast<int>(x.m), n = static_cast<int>(x.n), k = static_cast<int>(x.k);
    for (auto _ : state) {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, x.a.data(), k, x.b.data(),
                    k, 0, x.c.data(), n);
        benchmark::ClobberMemory();
    }
    x.done(state);
}

BENCHMARK(chain)->Args({2048, 512, 2048})->Args({2048, 2048, 512})->Args({256, 64, 256});
BENCHMARK(blas)->Args({2048, 512, 2048})->Args({2048, 2048, 512})->Args({256, 64, 256});

}  // namespace

BENCHMARK_MAIN();
