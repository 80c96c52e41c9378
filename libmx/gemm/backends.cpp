// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/backends.hpp"

#include "libmx/gemm/cuda/device_engine.hpp"
#include "libmx/gemm/simd/kernels.hpp"

namespace mx::gemm {
namespace {

bool everything(const accumulator&, const operand&, const operand&) { return true; }
std::unique_ptr<engine> plain(const operand& a, const operand& b, const accumulator& m,
                              int /*threads*/) {
    return make_plain_engine(a, b, m);
}

template <simd::target t>
constexpr backend vectors(std::string_view name) {
    return {base::backend_row(name),
            [](const accumulator& m, const operand& a, const operand& b) {
                return simd::has_software_kernels(t, m) || simd::computes(m, a, b);
            },
            [](const operand& a, const operand& b, const accumulator& m, int threads) {
                const simd::kernels& k = *simd::kernels_for(t);
                if (simd::has_software_kernels(t, m)) {
                    return simd::make_software_vectors(k, a, b, m);
                }
                if (simd::computes(m, a, b)) return simd::make_vector_engine(k, a, b, m, threads);
                return make_plain_engine(a, b, m);
            }};
}

constexpr std::array list{
    backend{base::backend_row("scalar"), everything, plain},
    vectors<simd::target::neon>("neon"),
    vectors<simd::target::sse4>("sse4"),
    vectors<simd::target::avx2>("avx2"),
    vectors<simd::target::avx512>("avx512"),
    backend{base::backend_row("cuda"), cuda::computes, cuda::make},
};
static_assert(list.size() == base::backends.size());

}  // namespace

std::span<const backend> backends() { return list; }

const backend& best_backend() { return list[base::best_backend()]; }

const backend& backend_named(std::string_view name) {
    return name.empty() ? best_backend() : list[base::backend_named(name)];
}

}  // namespace mx::gemm
