// SPDX-License-Identifier: Apache-2.0
// The kernel tables of this build's instruction sets.
#include "libmx/eval/simd/kernels.hpp"

#include <hwy/highway.h>

#include <array>

#define MX_KERNELS(space)                                        \
    namespace space {                                            \
    extern const kernels_of<float> float32_kernels;              \
    extern const kernels_of<double> float64_kernels;             \
    constexpr kernels table{&float32_kernels, &float64_kernels}; \
    }

namespace mx::eval::simd {

#include "libmx/base/simd/kernel_tables.inc"

const kernels& named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, target>, 4> sets{{{"neon", target::neon},
                                                                       {"sse4", target::sse4},
                                                                       {"avx2", target::avx2},
                                                                       {"avx512", target::avx512}}};
    for (const auto& [set, t] : sets) {
        if (set == name && kernels_for(t) != nullptr) return *kernels_for(t);
    }
    return scalar_kernels;
}

}  // namespace mx::eval::simd
