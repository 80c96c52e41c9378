// SPDX-License-Identifier: Apache-2.0
// The kernels of every instruction set that this build has.
#include "libmx/codec/simd/kernels.hpp"

#include <hwy/highway.h>

#include "libmx/codec/simd/vector_kernel.hpp"

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

namespace mx::codec::simd {

#include "libmx/base/simd/kernel_tables.inc"

}  // namespace mx::codec::simd
