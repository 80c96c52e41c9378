// SPDX-License-Identifier: Apache-2.0
// The layout of a batch in three memory blocks: one sent to the device and one received from it, so
// that each is a single copy, and one of the device, with the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/quantizer.hpp"

namespace mx::codec::cuda {

/// Rounds up to an offset at which a kernel may access any type.
constexpr std::size_t padded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Offsets from the start of the received data.
struct recipe_layout {
    recipe_request asked;
    std::size_t slot;    ///< of its tallies and sums; OCP recipes come first
    std::size_t arrays;  ///< of its results per block
};

struct batch_layout {
    // Sent to the device.
    std::size_t recipes, dialects, pointed_at, segments;
    std::size_t table;  ///< of values stored as codes
    std::size_t ocp_count, dialect_count;
    std::size_t there_bytes;
    // Received from the device. The sums come first: they are initialized with zeros, sent together
    // with the above.
    std::size_t sums, tallies;
    std::size_t sent_bytes;
    std::vector<recipe_layout> by_recipe;
    std::size_t back_bytes;
    // Device only. The values are copied there apart from the above; the rest is undefined before
    // and after a launch.
    std::size_t values, value_bytes;
    std::size_t widened;  ///< values stored as codes: the same as bf16
    std::size_t raised, marks, marked;
    std::size_t nvfp4;              ///< an nvfp4_table for each recipe that has one
    std::size_t marks_per_segment;  ///< see launch; 0 without a body of rows
    bool raises;                    ///< whether a recipe requests raised exponents
    std::size_t scratch_bytes;

    std::size_t stride;                     ///< codes from one block to the next
    std::vector<std::size_t> first_blocks;  ///< by segment, then the number of all blocks
};

/// No recipe may request detail::stats. Throws base::error (unavailable) if a segment's extents do
/// not fit device_segment.
batch_layout lay_out(const value_rectangle& values, std::span<const placed_segment> segments,
                     std::span<const recipe_request> recipes);

/// Writes the data for the device (sent_bytes) to `there`, for pieces at `device_there`, at
/// `device_back` directly after it, and at `device_scratch` for values and temporary data. Returns
/// the launch, for values that are stored row by row without gaps.
launch fill(const batch_layout& layout, const value_rectangle& values,
            std::span<const placed_segment> segments, std::span<const recipe_request> recipes,
            std::byte* there, std::byte* device_there, std::byte* device_back,
            std::byte* device_scratch);

/// The received results of a segment under a recipe.
struct device_result {
    const segment_tally* tally;
    const block::exact_totals* totals;  ///< of all segments of the batch, not settled
    block_results of_blocks;
};

/// A segment's results in `back`, the received data.
device_result result_of(const batch_layout& layout, std::size_t segment, std::size_t recipe,
                        std::byte* back);

}  // namespace mx::codec::cuda
