// SPDX-License-Identifier: Apache-2.0
// THE LIST of backends, from the reference to the fastest: what quantizes, casts and computes
// emulated products and training runs. Their implementations: codec/backends.cpp,
// gemm/backends.cpp, lab/machine.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "libmx/base/cuda/device.hpp"
#include "libmx/base/simd/targets.hpp"

namespace mx::base {

/// Every backend computes the same bytes.
struct backend {
    std::string_view name;
    std::string_view summary;
    /// Why it cannot run here, as a sentence without a full stop; empty if it can.
    std::string (*missing)();
    /// Has its own memory, is efficient with large panels, and is used only on request.
    bool device = false;

    bool available() const { return missing().empty(); }
    bool is_device() const { return device; }
};

template <simd::target t>
std::string missing_vectors() {
    return simd::supported(t) ? "" : "this CPU or build does not have it";
}

/// Every backend of mx, including those that this build or this machine lacks.
inline constexpr std::array backends{
    backend{"scalar", "the reference: portable C++, one block at a time",
            [] { return std::string(); }},
    backend{"neon", "Arm, 128-bit vectors", missing_vectors<simd::target::neon>},
    backend{"sse4", "x86, 128-bit vectors", missing_vectors<simd::target::sse4>},
    backend{"avx2", "x86, 256-bit vectors", missing_vectors<simd::target::avx2>},
    backend{"avx512", "x86, 512-bit vectors", missing_vectors<simd::target::avx512>},
    backend{"cuda", "NVIDIA GPUs", cuda::missing, true},
};

/// The row named `name`; a compilation error if there is none.
constexpr const backend& backend_row(std::string_view name) {
    std::size_t i = 0;
    while (backends[i].name != name) ++i;
    return backends[i];
}

/// The index of the fastest backend available here that is not a device.
std::size_t best_backend();

/// The index of the backend named `name`. Throws base::error: usage, naming the nearest, if there
/// is none; unavailable if it cannot run here.
std::size_t backend_named(std::string_view name);

}  // namespace mx::base
