// SPDX-License-Identifier: Apache-2.0
// The two steps in which a CPU quantizes a segment: lay out its values, then quantize them under
// each recipe. Instruction sets differ only in these (make_cpu_quantizer).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "libmx/base/aligned.hpp"
#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/codec/segment.hpp"

namespace mx::codec {

/// Consecutive blocks of a segment, shared by recipes with the same block shape. Block b is at b *
/// stride in `x`, row by row, padded with +0 to the stride.
struct block_run {
    segment_place place;
    const float* x = nullptr;
    std::size_t stride = 0;  ///< see block_stride
    std::size_t blocks = 0;
    base::aligned_buffer<float> x_buffer;  ///< of `x`, unless it is the stored values themselves
    base::aligned_buffer<float> rows_buffer;

    // Of the vector kernels, per block, with room for a multiple of 16 blocks:
    base::aligned_buffer<std::uint32_t> amax;     ///< magnitude bits of the largest element
    base::aligned_buffer<std::uint32_t> amin;     ///< of the smallest that is not zero, 0 if none
    base::aligned_buffer<std::uint32_t> nonzero;  ///< elements that are not zero

    // Terms whose exact sums are those of x and x^2 over the run, blocks with NaN or Inf left out,
    // where its numbers have a range that allows it.
    enum class run_sums : std::uint8_t { unknown, too_wide, ready };
    run_sums whole = run_sums::unknown;
    int exponent_most = 0, exponent_least = 0;  ///< of the elements that are not zero
    static constexpr std::size_t most_terms = 32;
    base::aligned_buffer<double> terms_x, terms_x2;
    std::size_t x2_terms = 0;

    // Exact sums of x and x^2 over pieces of 16 or 32 elements, each in up to three doubles; of
    // blocks with NaN or Inf they are zeros. Elements too far below the largest of their block are
    // not in them but listed.
    struct small_element {
        std::uint32_t block;
        float x;
    };
    bool has_sums = false;
    int precision = 24;  ///< significant bits of an element
    int x_levels = 1;    ///< doubles of a sum of x^2; 3: those of x have two
    base::aligned_buffer<double> sum_x, sum_x_low, sum_x2, sum_x2_low, sum_x2_least;
    small_element* small = nullptr;
    std::size_t smalls = 0;
    base::aligned_buffer<small_element> small_buffer;

    const std::byte* next = nullptr;  ///< the values that are likely to come next, or null
    std::size_t next_step = 0;        ///< bytes of one of them

    // Random draws of the elements, laid out as `x`, and the seed they are for.
    const std::uint32_t* draws = nullptr;  ///< null: none yet
    std::uint64_t draw_seed = 0;
    base::aligned_buffer<float> draw_buffer;
    base::aligned_buffer<float> draw_rows;
};

/// Floats from one block to the next: one or more pieces of 32, or one of 16 for small blocks.
constexpr std::size_t block_stride(std::size_t block_size) {
    return block_size <= 16 ? 16 : (block_size + 31) / 32 * 32;
}
inline std::size_t pieces_of(const block_run& run) {
    return run.stride < 32 ? run.blocks : run.blocks * (run.stride / 32);
}

/// The results requested under a recipe, and buffers for results per block, reused for all
/// segments.
struct block_details {
    recipe_request asked;
    block_results results;

    /// Allocates buffers for the blocks of `run`, including what a vector may write beyond them.
    void fit(const block_run& run);

  private:
    base::aligned_buffer<std::byte> memory_;
};

struct segment_kernel {
    /// Lays out the values of a segment and surveys them once for all recipes.
    void (*load)(const stored_values& values, const segment_place& place, block_run& run);
    /// Quantizes them under one recipe.
    block::segment_stats (*quantize)(const block_params& p, block_run& run, block_details& details);
};

/// The CPU quantizer: segment by segment, reading the values once for all recipes.
std::unique_ptr<quantizer> make_cpu_quantizer(const segment_kernel& kernel);

/// In portable code: widens the values of a segment and lays them out as block_run says. Values
/// that already lie so are not copied.
void pack_blocks(const stored_values& values, const segment_place& place, block_run& run);

/// The reference: block by block with block_kernel.hpp.
namespace scalar {

block::segment_stats quantize(const block_params& p, block_run& run, block_details& details);

inline constexpr segment_kernel kernel{pack_blocks, quantize};

/// One block of a run by the reference: its codes into `details` where they are wanted, its exact
/// sums added to `sums` unless that is null. `bump`: see block_place.
block::block_stats quantize_one(const block_params& p, const block_run& run, std::size_t block,
                                block_details& details, block::exact_totals* sums,
                                const std::uint8_t* bump = nullptr);

}  // namespace scalar

}  // namespace mx::codec
