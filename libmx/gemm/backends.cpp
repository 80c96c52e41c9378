// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/backends.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/gemm/cuda/cuda_engine.hpp"
#include "libmx/gemm/simd/software_vectors.hpp"
#include "libmx/gemm/simd/vector_engine.hpp"

namespace mx::gemm {
namespace {

bool always() { return true; }
bool everything(const accumulator&, const operand&, const operand&) { return true; }
std::unique_ptr<engine> plain(const operand& a, const operand& b, const accumulator& m,
                              int /*threads*/) {
    return make_plain_engine(a, b, m);
}

template <simd::target t>
struct vectors {
    static bool available() { return simd::supported(t); }
    static bool computes(const accumulator& m, const operand& a, const operand& b) {
        return simd::has_software_kernels(t, m) || simd::computes(m, a, b);
    }
    static std::unique_ptr<engine> make(const operand& a, const operand& b, const accumulator& m,
                                        int threads) {
        const simd::kernels& k = *simd::kernels_for(t);
        if (simd::has_software_kernels(t, m)) return simd::make_software_vectors(k, a, b, m);
        if (simd::computes(m, a, b)) return simd::make_vector_engine(k, a, b, m, threads);
        return make_plain_engine(a, b, m);
    }
};

template <simd::target t>
constexpr backend vector_backend(std::string_view name, std::string_view summary) {
    using v = vectors<t>;
    return {name, summary, v::available, v::computes, v::make};
}

constexpr std::array list{
    backend{"scalar", "the plain loop: one step of one output at a time, in integers", always,
            everything, plain},
    vector_backend<simd::target::neon>("neon", "Arm, 128-bit vectors"),
    vector_backend<simd::target::sse4>("sse4", "x86, 128-bit vectors"),
    vector_backend<simd::target::avx2>("avx2", "x86, 256-bit vectors"),
    vector_backend<simd::target::avx512>("avx512", "x86, 512-bit vectors"),
    backend{"cuda", "NVIDIA GPUs: models that have steps", cuda::available, cuda::computes,
            cuda::make, cuda::missing},
};

}  // namespace

std::span<const backend> backends() { return list; }

const backend& best_backend() {
    const backend* best = &list.front();
    for (const backend& b : list) {
        // Asking a device starts its runtime.
        if (b.missing == nullptr && b.available()) best = &b;
    }
    return *best;
}

const backend& backend_named(std::string_view name) {
    if (name.empty()) return best_backend();
    std::vector<std::string_view> names;
    for (const backend& b : list) {
        names.push_back(b.name);
        if (b.name != name) continue;
        if (b.available()) return b;
        if (b.missing != nullptr) {
            throw base::error(
                base::error_kind::unavailable,
                fmt::format("backend {} cannot run here: {}; 'mx version' lists what can", name,
                            b.missing()));
        }
        throw base::error(
            base::error_kind::unavailable,
            fmt::format("backend {} cannot run here; 'mx version' lists what can", name));
    }
    throw base::error(base::error_kind::usage, base::unknown("backend", name, names));
}

}  // namespace mx::gemm
