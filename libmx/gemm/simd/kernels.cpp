// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this build has, and what the processor says.
#include "libmx/gemm/simd/kernels.hpp"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "libmx/gemm/simd/vector_engine.hpp"

#define MX_KERNELS(space)                                                                     \
    namespace space {                                                                         \
    int lanes();                                                                              \
    void fused_narrow(const panel_tile&);                                                     \
    void fused_wide(const panel_tile&);                                                       \
    void grouped(const panel_tile&);                                                          \
    void exact_ends(const double*, const double*, std::size_t, const float*, float*, float*); \
    void chain(const float*, const float*, std::size_t, bool, float*);                        \
    constexpr kernels table{lanes, fused_narrow, fused_wide, grouped, exact_ends, chain};     \
    }

namespace mx::gemm::simd {

#if HWY_TARGETS & HWY_SSE4
MX_KERNELS(N_SSE4)
#endif
#if HWY_TARGETS & HWY_AVX2
MX_KERNELS(N_AVX2)
#endif
#if HWY_TARGETS & HWY_AVX3
MX_KERNELS(N_AVX3)
#endif
#if HWY_TARGETS & HWY_NEON
MX_KERNELS(N_NEON)
#endif

const kernels* kernels_for(target t) {
    switch (t) {
#if HWY_TARGETS & HWY_SSE4
        case target::sse4:
            return &N_SSE4::table;
#endif
#if HWY_TARGETS & HWY_AVX2
        case target::avx2:
            return &N_AVX2::table;
#endif
#if HWY_TARGETS & HWY_AVX3
        case target::avx512:
            return &N_AVX3::table;
#endif
#if HWY_TARGETS & HWY_NEON
        case target::neon:
            return &N_NEON::table;
#endif
        default:
            return nullptr;
    }
}

bool supported(target t) {
    if (kernels_for(t) == nullptr) return false;
    const auto has = hwy::SupportedTargets();
    switch (t) {
        case target::sse4:
            return (has & HWY_SSE4) != 0;
        case target::avx2:
            return (has & HWY_AVX2) != 0;
        case target::avx512:
            return (has & HWY_AVX3) != 0;
        case target::neon:
            return (has & HWY_NEON) != 0;
    }
    return false;
}

}  // namespace mx::gemm::simd
