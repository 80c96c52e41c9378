// SPDX-License-Identifier: Apache-2.0
// What a driver is: the two steps of quantizing a segment. Every driver leaves the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "libmx/base/aligned.hpp"
#include "libmx/base/notices.hpp"
#include "libmx/block/segment_stats.hpp"
#include "libmx/quantize/block_params.hpp"
#include "libmx/quantize/segment.hpp"

namespace mx::quantize {

/// The blocks of a segment, one after the other: what recipes of one block shape share. `x` holds
/// block b at b * stride, row by row, filled up with +0 to the stride.
struct block_run {
    segment_place place;
    const float* x = nullptr;
    std::size_t stride = 0;  ///< see block_stride
    std::size_t blocks = 0;
    base::aligned_buffer<float> room;  ///< where `x` lies unless it is the stored values themselves
    base::aligned_buffer<float> rows_room;
    stored_values values;  ///< the same as stored, of drivers of other devices

    // Of the vector drivers, per block, with room for a multiple of 16 blocks:
    base::aligned_buffer<std::uint32_t> amax;     ///< magnitude bits of the largest element
    base::aligned_buffer<std::uint32_t> amin;     ///< of the smallest that is not zero, 0 if none
    base::aligned_buffer<std::uint32_t> nonzero;  ///< elements that are not zero

    /// The sum of x^2 over the segment, the same under every recipe that leaves no block to the
    /// reference: powers of two do not round.
    double x2 = 0;
    bool has_x2 = false;
    const std::byte* next = nullptr;  ///< the values that are likely to come next, or null
    std::size_t next_step = 0;        ///< bytes of one of them

    // Random draws of the elements, laid out as `x`, and the seed they are for.
    const std::uint32_t* draws = nullptr;  ///< null: none yet
    std::uint64_t draw_seed = 0;
    base::aligned_buffer<float> draw_room;
    base::aligned_buffer<float> draw_rows;
};

/// Floats from one block to the next: one or more chunks of the sums, or half of one for small
/// blocks.
constexpr std::size_t block_stride(std::size_t block_size) {
    return block_size <= 16 ? 16 : (block_size + 31) / 32 * 32;
}

/// What is wanted of every block besides the sums of the segment.
enum class detail : std::uint8_t {
    none,
    codes,  ///< codes and the facts of a scale
    stats,  ///< these and all of block_stats
};

/// Per-block results, as far as asked for. Owned by whoever runs the driver, reused.
struct block_details {
    detail wanted = detail::none;
    bool parts = false;   ///< also the parts of the squared error, in what drivers return
    bool values = false;  ///< also dequantized values, unless codes tell them (codes_tell_values)
    base::aligned_buffer<std::uint8_t> codes;  ///< laid out as block_run::x; rest undefined
    base::aligned_buffer<std::uint8_t> scale_code;
    base::aligned_buffer<std::uint16_t> offset;
    base::aligned_buffer<std::uint32_t> amax, x_max, x_min;  ///< see block_stats
    base::aligned_buffer<block::block_stats> stats;
    base::aligned_buffer<float> dequantized;  ///< laid out as codes

    /// Makes room for the blocks of `run`, and what a vector may write beyond them.
    void fit(const block_run& run);
    /// The values of `p` where they are wanted and codes do not tell them, else null; after fit().
    float* values_of(const block_params& p, const block_run& run);
    /// Keeps what `s` says about block `b`.
    void put(std::size_t b, const block::block_stats& s);
};

/// Per-block results where they lie, as far as they were asked for (else null): those of
/// block_details. Blocks of codes are `stride` apart.
struct details_view {
    std::size_t blocks = 0, stride = 0;
    const std::uint8_t* codes = nullptr;
    const std::uint8_t* scale_code = nullptr;
    const std::uint16_t* offset = nullptr;
    const std::uint32_t* amax = nullptr;
    const std::uint32_t* x_max = nullptr;
    const std::uint32_t* x_min = nullptr;
    const block::block_stats* stats = nullptr;
    const float* values = nullptr;
};

/// What a driver made of `run` under `p`.
details_view view_of(const block_params& p, const block_run& run, const block_details& details);

class element_batch;
class segment_batch;

struct driver {
    std::string_view name;
    std::string_view summary;
    /// Whether this build has it and this processor can run it.
    bool (*available)();
    /// Lays out the values of a segment and looks at them once for all recipes.
    void (*load)(const stored_values& values, const segment_place& place, block_run& run);
    /// Quantizes them under one recipe.
    block::segment_stats (*quantize)(const block_params& p, block_run& run, block_details& details);

    // Of drivers that work on another device; null for the others.
    /// Why it is not available, as a whole sentence without its point.
    std::string (*missing)() = nullptr;
    /// Somebody who takes the segments of a panel at once, for one thread; null: one by one.
    std::unique_ptr<segment_batch> (*make_batch)() = nullptr;
    /// Somebody who casts values without blocks, for one thread; null: the host does. `notices` as
    /// of quantize::make_element_batch.
    std::unique_ptr<element_batch> (*make_element_batch)(base::notices* notices) = nullptr;
};

}  // namespace mx::quantize
