// SPDX-License-Identifier: Apache-2.0
// The entry points of the vector drivers: one table per instruction set.
#pragma once

#include <cstdint>

#include "libmx/base/simd/targets.hpp"
#include "libmx/codec/segment_kernel.hpp"
#include "libmx/codec/simd/element_grid.hpp"

namespace mx::codec::simd {

using base::simd::target;

/// Sums of the chunks of a run (sum_tree.hpp) in units of their block's scale. With offsets all are
/// doubles in units of x.
struct chunk_sums {
    bool with_x2 = true;  ///< without codes and offsets: whether x2 is wanted
    base::aligned_buffer<float> error2, x2, xd, d2;
    base::aligned_buffer<double> error;
    base::aligned_buffer<double> in_x_error2, in_x_x2, in_x_xd, in_x_d2;

    bool with_parts = false;  ///< also error2 part by part; the rest is filled only then
    base::aligned_buffer<float> clamp_error2, underflow_error2, grid_error2;
    base::aligned_buffer<double> in_x_clamp, in_x_underflow, in_x_grid;
};

/// Counts over all elements of a run, padding included.
struct grid_counts {
    std::uint64_t overflow = 0, clamp = 0, top_code = 0, zero = 0, subnormal = 0;
    double max_error = 0;
    std::uint64_t slots = 0;  ///< elements that were looked at
};

/// What scales and flags are made from, per block; room as in block_run.
struct block_extremes {
    const std::uint32_t* ruled;  ///< bits of what the scale rule sees
    const std::uint32_t* amax;   ///< of the numbers that are scaled: x, or float32(x - O)
    const std::uint32_t* amin;
    const std::uint32_t* nonzero;
};

/// The same with offsets.
struct centred_blocks {
    base::aligned_buffer<float> offset;
    base::aligned_buffer<std::uint16_t> offset_bits;
    base::aligned_buffer<std::uint32_t> ruled, amax, amin, nonzero;
};

/// What the scale of a block comes to.
struct block_scales {
    base::aligned_buffer<std::uint32_t> code;
    base::aligned_buffer<float> reciprocal;   ///< 1 / S
    base::aligned_buffer<float> scale;        ///< S
    base::aligned_buffer<std::uint8_t> slow;  ///< blocks that the reference does, 0 or 1
    std::size_t slow_blocks = 0;
};

/// What flags and counts of blocks come to, slow ones left out.
struct block_verdicts {
    std::uint64_t zero = 0, eligible = 0, collapsed = 0, saturated = 0, dead = 0;
    std::uint64_t nonzero = 0;
    std::uint32_t amax = 0;      ///< the largest of block_extremes::amax
    std::uint64_t doubtful = 0;  ///< blocks whose flags only the reference can tell
};

struct kernels {
    int (*float_lanes)();  ///< of the vectors these were compiled for
    void (*load)(const stored_values& values, const segment_place& place, block_run& run);
    /// Random draws of the run's elements for a seed.
    void (*draw)(block_run& run, std::uint64_t seed);
    /// Offsets of the run's blocks, and the extremes of x - O.
    void (*centre)(const block_run& run, range_kind range, centred_blocks& out);
    /// Scales of `blocks` blocks.
    void (*scale)(const element_grid& g, const block_extremes& e, std::size_t blocks,
                  block_scales& out);
    /// Elements to codes (where wanted) and chunk sums.
    void (*elements)(const element_grid& g, const block_run& run, const block_scales& scales,
                     std::uint8_t* codes, chunk_sums& sums, grid_counts& counts);
    /// The same with offsets.
    void (*centred_elements)(const element_grid& g, const block_run& run,
                             const centred_blocks& centred, const block_scales& scales,
                             std::uint8_t* codes, chunk_sums& sums, grid_counts& counts);
    /// Flags of the blocks, from their extremes; `doubtful` gets 0 or 1 per block.
    void (*judge)(const element_grid& g, const block_extremes& e, std::size_t blocks,
                  const block_scales& scales, block_verdicts& out, std::uint8_t* doubtful);
    /// Sums of the blocks, in order, to the lanes of the segment; `slow` has those of slow blocks.
    void (*add_blocks)(const block_run& run, bool centred, const block_scales& scales,
                       const chunk_sums& sums, const block::block_sums* slow,
                       block::segment_lanes& lanes);
    /// The same for the parts of the squared error.
    void (*add_parts)(const block_run& run, bool centred, const block_scales& scales,
                      const chunk_sums& sums, const block::block_parts* slow,
                      block::part_lanes& lanes);
};

/// The kernels of an instruction set, or null when this build lacks it.
const kernels* kernels_for(target t);

}  // namespace mx::codec::simd
