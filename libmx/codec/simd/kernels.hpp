// SPDX-License-Identifier: Apache-2.0
// The vector backends: their entry points, one table per instruction set, and whole segments by
// them; what is outside of their domain is done by the reference, block by block.
#pragma once

#include <cstdint>

#include "libmx/base/simd/targets.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/segment_kernel.hpp"
#include "libmx/codec/simd/block_scaling.hpp"

namespace mx::codec::simd {

// A recipe as float32 arithmetic sees it: the grid of the element format, the step of the scale
// rule. Adding and subtracting c = 2^23 quanta rounds a float32 to the grid, ties to even, because
// the sum has no bits below one quantum; c follows the exponent of the number where the format
// does.

struct kernels;

/// How elements are rounded, as far as kernels differ.
enum class rounding_kind : std::uint8_t { nearest, threshold, stochastic };

struct element_grid {
    bool fixed;                    ///< one quantum for all numbers
    std::uint32_t least_exponent;  ///< float32 exponent field, in place, of the lowest binade
    std::uint32_t magic_step;      ///< what leads from a binade to c: the distance, in place
    float max_positive, max_negative;
    float smallest_normal;  ///< 0 without subnormals

    rounding_kind rounding;
    /// threshold: goes up when the rest is more than this many quanta, by sign.
    float threshold_positive, threshold_negative;
    std::uint32_t random_mask;  ///< stochastic: the bits of a draw that count

    // Magnitude code of a normal number: bits >> code_shift, less code_base.
    int bits;
    int code_shift;
    std::uint32_t code_base;
    float inverse_quantum;  ///< of the fixed grid

    // Scale code: (amax bits + rule_step) >> 23, less rule_base, between 0 and 254.
    std::uint32_t rule_step;
    int rule_base;
    float least, most;  ///< of non-zero |y|; blocks beyond are for the reference

    zero_sign sign_of_zero;  ///< of general blocks: the sign of the code of a zero
};

/// Whether a recipe can be put so.
bool takes(const block_params& p);

/// The grid of a recipe that takes() approves.
element_grid grid_of(const block_params& p);

/// The same of a cast.
bool takes_cast(const element_cast& to);

/// Casts up to the first vector that kernels leave to the reference, and returns how many elements
/// are done; empty where they do not take the cast.
vector_cast cast_by(const kernels& k, const element_cast& to);

using base::simd::supported;
using base::simd::target;

/// Counts over the elements of a run, padding included, blocks left to the reference apart.
struct grid_counts {
    std::uint64_t overflow = 0, clamp = 0, top_code = 0, zero = 0, subnormal = 0;
    std::uint64_t slots = 0;  ///< elements that were looked at

    grid_counts& operator+=(const grid_counts& o) {
        overflow += o.overflow;
        clamp += o.clamp;
        top_code += o.top_code;
        zero += o.zero;
        subnormal += o.subnormal;
        slots += o.slots;
        return *this;
    }
};

/// What became of the elements of a run, laid out as its values.
struct element_outputs {
    float* q;                  ///< numbers of the grid, in units of the scale
    std::uint8_t* codes;       ///< or null
    block::error_part* parts;  ///< or null; of zeros that stay zero: any
    grid_counts* counts;       ///< by block, without slots, or null
};

/// The numbers of an element format: multiples of 2^least below 2^most.
struct grid_range {
    int least, most;
};
grid_range range_of(const block_params& p);

/// What elements are multiplied with. Blocks that are not left to the reference hold magnitudes up
/// to 4 * 2^most scales (with an offset: any); what becomes a number other than zero has at least
/// about half a unit, or the range of x was looked at (element_grid::least, leave_wide_blocks).
struct product_plan {
    grid_range range;
    bool power_of_two;         ///< all scales
    const std::uint8_t* slow;  ///< of blocks
    const double* scale;       ///< of blocks
    const float* offset;       ///< of blocks, or null
    const float* q;
};

/// Exact sums over pieces of 16 or 32 elements, in units of the scale and of x; those that need two
/// doubles are split.
struct product_sums {
    bool split_q2 = false, split_xq = false;
    base::aligned_buffer<double> q, q2, q2_low, xq, xq_low;
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

/// Of general blocks, see block_scaling; that of one which is left to the reference makes zeros of
/// zeros.
struct general_scales {
    base::aligned_buffer<double> scale, inverse;
    base::aligned_buffer<float> factor, overflow, clamp;
};

/// Four-over-six, per block: both scalings, 1 / S in float32, and which one is taken; and about how
/// large the errors of a chunk become, in units of S.
struct trial_scales {
    base::aligned_buffer<block_scaling> six, four;
    base::aligned_buffer<float> inverse_six, inverse_four, error_six, error_four;
    base::aligned_buffer<std::uint8_t> taken;
};

/// Elements of the largest block whose scale is found by trial here.
inline constexpr std::size_t largest_tried = 256;

/// scale=search: the scales to try.
struct search_plan {
    bool squares;                   ///< of the errors, or their magnitudes
    const float *scale, *inverse;   ///< S and 1 / S by code, in float32
    int lowest, highest;            ///< the codes that can be found
    int least_usable, most_usable;  ///< those whose scales float32 arithmetic bears
    int reach;
};

/// Four-over-six as dialect te has it, see te_error.
struct te_plan {
    bool squares, fp16;
    float amax, range, stored;
    std::size_t cols;  ///< of a row of the block; at most te_rows of them
};
inline constexpr std::size_t te_rows = 16;

struct te_candidates {
    base::aligned_buffer<float> scale, factor;  ///< of the block alone, and of its elements
};

/// What is tried and found, per block.
struct block_trials {
    /// search: the code that it begins with, then the one that was found. te: 1 where the scale
    /// that makes the largest element 4 is taken, else 0.
    base::aligned_buffer<std::int32_t> code;
    base::aligned_buffer<std::uint8_t> doubtful;  ///< search: 1 where only the reference can tell
    te_candidates six, four;
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
    /// Elements to numbers of the grid.
    void (*elements)(const element_grid& g, const block_run& run, const block_scales& scales,
                     const element_outputs& to, grid_counts& counts);
    /// The same with offsets.
    void (*centred_elements)(const element_grid& g, const block_run& run,
                             const centred_blocks& centred, const block_scales& scales,
                             const element_outputs& to, grid_counts& counts);
    /// The same of general blocks.
    void (*general_elements)(const element_grid& g, quotient_kind kind, const block_run& run,
                             const general_scales& general, const block_scales& scales,
                             const element_outputs& to, grid_counts& counts);
    /// Elements to codes and nothing else, blocks left to the reference apart; `offset`: of the
    /// blocks, or null.
    void (*codes)(const element_grid& g, const block_run& run, const float* offset,
                  const block_scales& scales, std::uint8_t* to);
    /// The same of general blocks.
    void (*general_codes)(const element_grid& g, quotient_kind kind, const block_run& run,
                          const general_scales& general, const block_scales& scales,
                          std::uint8_t* to);
    /// Values without a scale to codes, numbers of the grid or both, see cast_by.
    std::size_t (*cast)(const element_grid& g, bool saturate, const stored_values& from,
                        std::size_t count, std::uint8_t* to, float* values);
    /// The errors of the blocks under both scales of four-over-six.
    void (*measure_trials)(const element_grid& g, four_over_six by, const block_run& run,
                           trial_scales& trials);
    /// scale=search for blocks of at most largest_tried elements.
    void (*search)(const element_grid& g, const search_plan& plan, const block_run& run,
                   block_trials& trials);
    /// Four-over-six of dialect te, for the same.
    void (*choose_as_te)(const element_grid& g, const te_plan& plan, const block_run& run,
                         block_trials& trials);
    /// Flags of the blocks, from their extremes; `doubtful` gets 0 or 1 per block.
    void (*judge)(const element_grid& g, const block_extremes& e, std::size_t blocks,
                  const block_scales& scales, block_verdicts& out, std::uint8_t* doubtful);
    /// The same of general blocks.
    void (*judge_general)(const element_grid& g, quotient_kind kind, const block_extremes& e,
                          std::size_t blocks, const general_scales& general,
                          const block_scales& scales, block_verdicts& out, std::uint8_t* doubtful);
    /// Sums of x and x^2 over the pieces of a run.
    void (*sum_values)(block_run& run);
    /// Sums of products over pieces; returns the largest |d - x|.
    double (*multiply_elements)(const product_plan& plan, const block_run& run, product_sums& to);
    /// Adds the sums of all pieces but those of blocks left to the reference.
    void (*add_products)(const product_plan& plan, const block_run& run, product_sums& of,
                         block::exact_totals& to);
    /// The sums of every block, rounded once, and its largest error; `doubtful` gets 1 where only
    /// exact_sum can round them, else 0. Both mean nothing for blocks left to the reference.
    void (*round_sums)(const product_plan& plan, const block_run& run, const product_sums& of,
                       block::block_sums* to, std::uint8_t* doubtful);
};

/// The kernels of an instruction set, or null when this build lacks it.
const kernels* kernels_for(target t);

// Whole segments by vector kernels of an instruction set; what is outside of their domain by the
// reference, block by block.

/// The segment under one recipe; the bytes of scalar::quantize.
block::segment_stats quantize(const kernels& k, const block_params& p, block_run& run,
                              block_details& details);

template <target t>
std::unique_ptr<caster> make_caster(base::notices*) {
    return make_cpu_caster([](const element_cast& to) { return cast_by(*kernels_for(t), to); });
}

/// The steps by kernels of an instruction set.
template <target t>
inline constexpr segment_kernel kernel_of{
    [](const stored_values& values, const segment_place& place, block_run& run) {
        kernels_for(t)->load(values, place, run);
    },
    [](const block_params& p, block_run& run, block_details& details) {
        return simd::quantize(*kernels_for(t), p, run, details);
    }};

}  // namespace mx::codec::simd
