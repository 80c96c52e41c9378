// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this build has, and what the processor says.
#include "libmx/quantize/simd/kernels.hpp"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "libmx/quantize/simd/vector_driver.hpp"

#define MX_KERNELS(space)                                                                    \
    namespace space {                                                                        \
    int lanes();                                                                             \
    void load(const stored_values&, const segment_place&, block_run&);                       \
    void draw(block_run&, std::uint64_t);                                                    \
    void centre(const block_run&, range_kind, centred_blocks&);                              \
    void scale(const element_grid&, const block_extremes&, std::size_t, block_scales&);      \
    void elements(const element_grid&, const block_run&, const block_scales&, std::uint8_t*, \
                  chunk_sums&, grid_counts&);                                                \
    void centred_elements(const element_grid&, const block_run&, const centred_blocks&,      \
                          const block_scales&, std::uint8_t*, chunk_sums&, grid_counts&);    \
    void judge(const element_grid&, const block_extremes&, std::size_t, const block_scales&, \
               block_verdicts&, std::uint8_t*);                                              \
    void add_blocks(const block_run&, bool, const block_scales&, const chunk_sums&,          \
                    const block::block_sums*, block::segment_lanes&);                        \
    void add_parts(const block_run&, bool, const block_scales&, const chunk_sums&,           \
                   const block::block_parts*, block::part_lanes&);                           \
    constexpr kernels                                                                        \
        table{lanes, load,       draw,     centre, scale, elements, centred_elements,        \
              judge, add_blocks, add_parts};                                                 \
    }

namespace mx::quantize::simd {

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

}  // namespace mx::quantize::simd
