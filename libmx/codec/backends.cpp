// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/backends.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/codec/cpu_quantizer.hpp"
#include "libmx/codec/cuda/cuda_backend.hpp"
#include "libmx/codec/cuda/cuda_meter.hpp"
#include "libmx/codec/scalar_kernel.hpp"
#include "libmx/codec/simd/element_grid.hpp"
#include "libmx/codec/simd/vector_kernel.hpp"

namespace mx::codec {
namespace {

std::string nothing_missing() { return {}; }
std::unique_ptr<quantizer> scalar_quantizer() { return make_cpu_quantizer(scalar::kernel); }

template <simd::target t>
constexpr backend vector_backend(std::string_view name, std::string_view summary) {
    return {
        name,
        summary,
        [] { return std::string(simd::supported(t) ? "" : "this processor or build lacks it"); },
        [] { return make_cpu_quantizer(simd::kernel_of<t>); },
        make_host_caster,
        nullptr,
        simd::takes};
}

constexpr std::array list{
    backend{"scalar", "the reference: portable C++, one block at a time", nothing_missing,
            scalar_quantizer, make_host_caster},
    vector_backend<simd::target::neon>("neon", "Arm, 128-bit vectors"),
    vector_backend<simd::target::sse4>("sse4", "x86, 128-bit vectors"),
    vector_backend<simd::target::avx2>("avx2", "x86, 256-bit vectors"),
    vector_backend<simd::target::avx512>("avx512", "x86, 512-bit vectors"),
    backend{"cuda", "NVIDIA GPUs", cuda::missing, cuda::make_quantizer, cuda::make_caster,
            cuda::make_meter},
};

}  // namespace

std::span<const backend> backends() { return list; }

const backend& best_backend() {
    const backend* best = &list.front();
    for (const backend& b : list) {
        // Asking a device starts its runtime.
        if (!b.is_device() && b.available()) best = &b;
    }
    return *best;
}

const backend& backend_named(std::string_view name) {
    std::vector<std::string_view> names;
    for (const backend& b : list) {
        names.push_back(b.name);
        if (b.name != name) continue;
        if (b.available()) return b;
        const std::string why = b.is_device() ? ": " + b.missing() : "";
        throw base::error(
            base::error_kind::unavailable,
            fmt::format("backend {} cannot run here{}; 'mx version' lists what can", name, why));
    }
    throw base::error(base::error_kind::usage, base::unknown("backend", name, names));
}

}  // namespace mx::codec
