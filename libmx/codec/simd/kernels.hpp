// SPDX-License-Identifier: Apache-2.0
// The vector backends: their entry points, one table of kernels per instruction set, and the
// quantization of whole segments. Blocks that the kernels do not support go to the reference one by
// one.
#pragma once

#include <cstdint>
#include <deque>

#include "libmx/base/simd/targets.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/caster.hpp"
#include "libmx/codec/segment_kernel.hpp"
#include "libmx/codec/simd/block_scaling.hpp"

namespace mx::codec::simd {

// A recipe in float32 arithmetic: the grid of the element format and the step of the scale rule.
// Adding and subtracting c = 2^23 quanta rounds a float32 to the grid, ties to even, because the
// sum has no bits below one quantum. c follows the exponent of the number if the format's quantum
// does.

struct kernels;

/// Kinds of rounding that need different kernels.
enum class rounding_kind : std::uint8_t { nearest, threshold, stochastic };

/// The float below one half.
inline constexpr float half_or_more = 0x1.fffffep-2f;

struct element_grid {
    bool fixed;                    ///< one quantum for all numbers
    std::uint32_t least_exponent;  ///< float32 exponent field, in place, of the lowest binade
    std::uint32_t magic_step;      ///< distance from a binade to its c, in place
    float max_positive, max_negative;
    float smallest_normal;  ///< 0 without subnormals

    rounding_kind rounding;
    /// threshold: rounds up if the remainder is more than this many quanta, by sign; half_or_more:
    /// if it is half a quantum or more. `by_code`: not by sign but by the code below, even
    /// (positive) or odd.
    float threshold_positive, threshold_negative;
    bool by_code;
    std::uint32_t random_mask;  ///< stochastic: the bits of a draw that are used

    // Magnitude code of a normal number: bits >> code_shift, less code_base.
    int bits;
    int code_shift;
    std::uint32_t code_base;
    float inverse_quantum;  ///< fixed grid only

    // Scale code: (amax bits + rule_step) >> 23, less rule_base, between 0 and 254.
    std::uint32_t rule_step;
    int rule_base;
    int rule_finite;    ///< the largest amax bits without a NaN scale
    float least, most;  ///< limits of non-zero |y|; blocks beyond them go to the reference

    zero_sign sign_of_zero;  ///< of dialect blocks: the sign of the code of a zero
};

/// Whether a recipe can be described by an element_grid.
bool takes(const block_params& p);

/// The grid of a recipe that takes() accepts.
element_grid grid_of(const block_params& p);

/// The same for a cast.
bool takes_cast(const element_cast& to);

/// Casts up to the first vector that kernels leave to the reference, and returns the number of
/// elements done; empty if the kernels do not support the cast.
vector_cast cast_by(const kernels& k, const element_cast& to);

using base::simd::supported;
using base::simd::target;

/// Counts over the elements of a run, padding included, without blocks left to the reference.
struct grid_counts {
    std::uint64_t overflow = 0, clamp = 0, top_code = 0, zero = 0, subnormal = 0;
    std::uint64_t slots = 0;  ///< elements examined

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

/// The results for the elements of a run, laid out as its values.
struct element_outputs {
    float* q;                  ///< numbers of the grid, in units of the scale
    std::uint8_t* codes;       ///< or null
    block::error_part* parts;  ///< or null; arbitrary for zeros that stay zero
    grid_counts* counts;       ///< by block, without slots, or null
};

/// The numbers of an element format: multiples of 2^least below 2^most.
struct grid_range {
    int least, most;
};
grid_range range_of(const block_params& p);

/// The factors of the products. Blocks not left to the reference contain magnitudes up to 4 *
/// 2^most scales (with an offset: any). An element with a non-zero result is at least about half a
/// unit, unless the range of x was checked (element_grid::least, leave_wide_blocks).
struct product_plan {
    grid_range range;
    bool power_of_two;         ///< all scales
    const std::uint8_t* slow;  ///< per block
    bool bounded_below;        ///< elements with a non-zero result have at least about half a unit
    const double* scale;       ///< per block; 0 for slow ones
    double outer;              ///< a factor that scales may share
    const float* offset;       ///< per block, or null
    const float* q;
};

/// Exact sums over pieces of 16 or 32 elements, in units of the scale and of x; sums that need two
/// doubles are split.
struct product_sums {
    bool split_q2 = false, split_xq = false;
    base::aligned_buffer<double> q, q2, q2_low, xq, xq_low;
};

/// The inputs of scales and flags, per block; allocated as in block_run.
struct block_extremes {
    const std::uint32_t* ruled;  ///< bits of the input of the scale rule
    const std::uint32_t* amax;   ///< of the numbers to be scaled: x, or float32(x - O)
    const std::uint32_t* amin;
    const std::uint32_t* nonzero;
};

/// The same with offsets.
struct centred_blocks {
    base::aligned_buffer<float> offset;
    base::aligned_buffer<std::uint16_t> offset_bits;
    base::aligned_buffer<std::uint32_t> ruled, amax, amin, nonzero;
};

/// The scales of blocks.
struct block_scales {
    base::aligned_buffer<std::uint32_t> code;
    base::aligned_buffer<float> reciprocal;   ///< 1 / S
    base::aligned_buffer<float> scale;        ///< S
    base::aligned_buffer<std::uint8_t> slow;  ///< blocks left to the reference, 0 or 1
    std::size_t slow_blocks = 0;
};

/// For dialect blocks, see block_scaling; for a block left to the reference kernels produce zeros.
struct dialect_scales {
    base::aligned_buffer<double> scale, inverse;
    base::aligned_buffer<float> factor, overflow, clamp;
};

/// Four-over-six, per block: both scalings, 1 / S in float32, the block's own scale, the
/// approximate size of a chunk's errors in units of S, and the choice: 0 for the larger scale, 1
/// for the smaller one, 2 where the errors differ by less than their uncertainty.
struct trial_scales {
    base::aligned_buffer<const block_scaling*> six, four;
    std::deque<block_scaling> lone;  ///< those that no table keeps
    base::aligned_buffer<float> inverse_six, inverse_four, own_six, own_four;
    base::aligned_buffer<float> error_six, error_four;
    base::aligned_buffer<std::uint8_t> taken;
};

/// Elements of the largest block whose scale these kernels find by trial.
inline constexpr std::size_t largest_tried = 256;

/// scale=search: the scales to try.
struct search_plan {
    bool squares;                   ///< of the errors; else magnitudes
    const float *scale, *inverse;   ///< S and 1 / S by code, in float32
    int lowest, highest;            ///< range of the codes that can be found
    int least_usable, most_usable;  ///< range of those with scales that suit float32 arithmetic
    int reach;
    int codes_per_binade;  ///< of a scale format that is not a power of two
};

/// Four-over-six of dialect te, see te_error.
struct te_plan {
    bool squares, fp16;
    float amax, range, stored;
    std::size_t cols;  ///< per row of the block; at most te_rows of them
};
inline constexpr std::size_t te_rows = 16;

struct te_candidates {
    base::aligned_buffer<float> scale, factor;  ///< of the block alone, and of its elements
};

/// The trials of each block and their results.
struct block_trials {
    /// search: the first code, then the one that was found. te: 1 if the scale that makes the
    /// largest element 4 is taken, else 0.
    base::aligned_buffer<std::int32_t> code;
    base::aligned_buffer<std::uint8_t> doubtful;  ///< search: 1 if only the reference can decide
    te_candidates six, four;
};

/// Flags and counts of blocks, without slow ones.
struct block_verdicts {
    std::uint64_t zero = 0, eligible = 0, collapsed = 0, saturated = 0, dead = 0;
    std::uint64_t nonzero = 0;
    std::uint32_t amax = 0;      ///< the largest of block_extremes::amax
    std::uint64_t doubtful = 0;  ///< blocks whose flags only the reference can decide
};

struct kernels {
    int (*float_lanes)();  ///< of the vectors that the kernels were compiled for
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
    /// The same of dialect blocks.
    void (*dialect_elements)(const element_grid& g, quotient_kind kind, const block_run& run,
                             const dialect_scales& of_dialect, const block_scales& scales,
                             const element_outputs& to, grid_counts& counts);
    /// Elements to codes only, without blocks left to the reference; `offset`: per block, or null.
    void (*codes)(const element_grid& g, const block_run& run, const float* offset,
                  const block_scales& scales, std::uint8_t* to);
    /// The same of dialect blocks.
    void (*dialect_codes)(const element_grid& g, quotient_kind kind, const block_run& run,
                          const dialect_scales& of_dialect, const block_scales& scales,
                          std::uint8_t* to);
    /// Values without a scale to codes, numbers of the grid or both, see cast_by.
    std::size_t (*cast)(const element_grid& g, bool saturate, const stored_values& from,
                        std::size_t count, std::uint8_t* to, float* values);
    /// Chooses between the two scales of four-over-six.
    void (*compare_trials)(const element_grid& g, four_over_six by, const block_run& run,
                           trial_scales& trials);
    /// scale=search for blocks of at most largest_tried elements.
    void (*search)(const element_grid& g, const search_plan& plan, const block_run& run,
                   block_trials& trials);
    /// Four-over-six of dialect te for blocks of at most largest_tried elements.
    void (*choose_as_te)(const element_grid& g, const te_plan& plan, const block_run& run,
                         block_trials& trials);
    /// Flags of the blocks, from their extremes; `doubtful` receives 0 or 1 per block.
    void (*judge)(const element_grid& g, const block_extremes& e, std::size_t blocks,
                  const block_scales& scales, block_verdicts& out, std::uint8_t* doubtful);
    /// The same of dialect blocks.
    void (*judge_dialect)(const element_grid& g, quotient_kind kind, const block_extremes& e,
                          std::size_t blocks, const dialect_scales& of_dialect,
                          const block_scales& scales, block_verdicts& out, std::uint8_t* doubtful);
    /// Sums of x and x^2 over a run, once; false where its range is too wide.
    bool (*sum_run)(block_run& run);
    /// Adds the sums of a run that sum_run took, but for blocks left to the reference; false, and
    /// nothing is added, where ranges are too wide. `max_error`: the largest |d - x|.
    bool (*multiply_run)(const product_plan& plan, const block_run& run, product_sums& room,
                         block::exact_totals& to, double& max_error);
    /// Sums of x and x^2 over the pieces of a run.
    void (*sum_values)(block_run& run);
    /// Sums of products over pieces; returns the largest |d - x|.
    double (*multiply_elements)(const product_plan& plan, const block_run& run, product_sums& to);
    /// Adds the sums of all pieces except those of blocks left to the reference.
    void (*add_products)(const product_plan& plan, const block_run& run, product_sums& of,
                         block::exact_totals& to);
    /// The sums of every block, rounded once, and its largest error; `doubtful` gets 1 where only
    /// exact_sum can round them, else 0. Both mean nothing for blocks left to the reference.
    void (*round_sums)(const product_plan& plan, const block_run& run, const product_sums& of,
                       block::block_sums* to, std::uint8_t* doubtful);
};

/// The kernels of an instruction set, or null if this build lacks it.
const kernels* kernels_for(target t);

// Whole segments by vector kernels of an instruction set; blocks that they do not support go to the
// reference.

/// The segment under one recipe; the same bytes as scalar::quantize.
block::segment_stats quantize(const kernels& k, const block_params& p, block_run& run,
                              block_details& details);

template <target t>
std::unique_ptr<caster> make_caster(base::notices*) {
    return make_cpu_caster([](const element_cast& to) { return cast_by(*kernels_for(t), to); });
}

/// The kernels compiled for an instruction set.
template <target t>
inline constexpr segment_kernel kernel_of{
    [](const stored_values& values, const segment_place& place, block_run& run) {
        kernels_for(t)->load(values, place, run);
    },
    [](const block_params& p, block_run& run, block_details& details) {
        return simd::quantize(*kernels_for(t), p, run, details);
    }};

}  // namespace mx::codec::simd
