// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/drivers.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/quantize/cuda/cuda_driver.hpp"
#include "libmx/quantize/scalar_driver.hpp"
#include "libmx/quantize/simd/vector_driver.hpp"

namespace mx::quantize {
namespace {

template <simd::target t>
constexpr driver vector_driver(std::string_view name, std::string_view summary) {
    using d = simd::driver_of<t>;
    return {name, summary, d::available, d::load, d::quantize};
}

constexpr std::array list{
    driver{"scalar", "the reference: portable C++, one block at a time", scalar::available,
           scalar::load, scalar::quantize},
    vector_driver<simd::target::neon>("neon", "Arm, 128-bit vectors"),
    vector_driver<simd::target::sse4>("sse4", "x86, 128-bit vectors"),
    vector_driver<simd::target::avx2>("avx2", "x86, 256-bit vectors"),
    vector_driver<simd::target::avx512>("avx512", "x86, 512-bit vectors"),
    driver{"cuda", "NVIDIA GPUs", cuda::available, cuda::load, cuda::quantize, cuda::missing,
           cuda::make_batch, cuda::make_element_batch},
};

}  // namespace

std::span<const driver> drivers() { return list; }

const driver& best_driver() {
    const driver* best = &list.front();
    for (const driver& d : list) {
        // Asking a device starts its runtime.
        if (d.make_batch == nullptr && d.available()) best = &d;
    }
    return *best;
}

const driver& driver_named(std::string_view name) {
    std::vector<std::string_view> names;
    for (const driver& d : list) {
        names.push_back(d.name);
        if (d.name != name) continue;
        if (d.available()) return d;
        if (d.missing != nullptr) {
            throw base::error(
                base::error_kind::unavailable,
                fmt::format("backend {} cannot run here: {}; 'mx version' lists what can", name,
                            d.missing()));
        }
        throw base::error(
            base::error_kind::unavailable,
            fmt::format("backend {} cannot run here; 'mx version' lists what can", name));
    }
    throw base::error(base::error_kind::usage, base::unknown("backend", name, names));
}

}  // namespace mx::quantize
