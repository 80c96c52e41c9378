// SPDX-License-Identifier: Apache-2.0
// The parameters of the kernels, and their launch functions. All pointers are device pointers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/block/block_stats.hpp"
#include "libmx/block/exact_totals.hpp"
#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/segment.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::codec::cuda {

// The parameters of a segment in a kernel and its outputs: trivially copyable, without ownership.

/// A segment among values stored row by row. Extents and counts fit 32 bits: a segment contains
/// some 4096 elements, or one block (block/view.hpp).
struct device_segment {
    std::uint64_t at;          ///< of its first element among the values
    std::uint64_t first;       ///< of its first element in the tensor, C order
    std::uint64_t row_stride;  ///< elements of the tensor from one row to the next
    std::uint64_t tensor_id;
    std::uint64_t first_block;  ///< index of its first block among those of the batch
    std::uint32_t rows, cols;
    std::uint32_t block_rows, block_cols;
};

/// Values on the device: f32, bf16 or f16, the first at a multiple of 16 bytes.
struct device_values {
    const std::byte* data;
    std::uint64_t stride;  ///< elements from one row to the next
    tensor::dtype type;
};

/// Codes of a thread, which loads and stores them together.
inline constexpr std::uint64_t codes_at_once = 4;
struct alignas(codes_at_once) code_group {
    std::uint8_t code[codes_at_once];
};
struct alignas(codes_at_once / 2) packed_group {
    std::uint8_t pair[codes_at_once / 2];  ///< the first code in the low bits
};
struct alignas(2 * codes_at_once) value_group {
    std::uint16_t value[codes_at_once];
};

/// Values on the device that are stored as codes of 8 or 4 bits. They are widened to bf16 first.
struct device_codes {
    const std::uint8_t* data;    ///< groups, or packed groups
    std::uint64_t count;         ///< of codes; 0: values are not stored so
    const std::uint16_t* table;  ///< 256 bf16, by code
    value_group* to;             ///< device_values::data
    bool packed;                 ///< codes of 4 bits

    MX_HD std::uint64_t groups() const { return (count + codes_at_once - 1) / codes_at_once; }
};

/// Counts and maxima of a segment: block::segment_stats without its sums.
struct segment_tally {
    double max_error;
    std::uint32_t elements, nan, inf, poisoned, nonzero;
    std::uint32_t overflow, clamp, top_code, underflow, subnormal, dequant_overflow;
    std::uint32_t blocks, zero, eligible, collapsed, saturated, dead;
    std::uint32_t counted_max;
};

/// A word of marks has a bit for each of 16 consecutive blocks of a segment.
inline constexpr int blocks_per_mark = 16;

/// Adds a block to the tally of its segment.
MX_HD inline void add_block(segment_tally& to, const block::block_stats& b) {
    block::each_count(block::plus{}, to, b.count);
    to.dequant_overflow += b.count.dequant_overflow;
    to.blocks += 1;
    block::each_flag(block::plus{}, to, b.is);
    to.counted_max = std::max(to.counted_max, b.counted_max);
    to.max_error = std::max(to.max_error, b.sum.max_error);
}

/// Adds the tally of a segment.
inline void add_counts(const segment_tally& from, block::segment_stats& to) {
    block::each_count(block::plus{}, to.count, from);
    to.count.dequant_overflow += from.dequant_overflow;
    to.block.blocks += from.blocks;
    block::each_flag(block::plus{}, to.block, from);
    to.max_error = std::max(to.max_error, from.max_error);
    to.counted_max = std::max(to.counted_max, from.counted_max);
}

/// Merges the tallies of two parts of a segment.
struct merged_tally {
    MX_HD segment_tally operator()(segment_tally a, const segment_tally& b) const {
        block::each_count(block::plus{}, a, b);
        a.dequant_overflow += b.dequant_overflow;
        a.blocks += b.blocks;
        block::each_flag(block::plus{}, a, b);
        a.counted_max = std::max(a.counted_max, b.counted_max);
        a.max_error = std::max(a.max_error, b.max_error);
        return a;
    }
};

/// An OCP recipe of a launch.
struct device_recipe {
    ocp_params params;
    block_results blocks;         ///< its requested results per block
    block::exact_totals* totals;  ///< of all segments; initially zeros
    bool parts;                   ///< whether to add the parts of the squared error
    std::uint8_t body;            ///< see body_of
};

struct nvfp4_table;

/// A dialect recipe. The data that its parameters point to are on the device, too.
struct dialect_recipe {
    block_params params;
    nvfp4_table* nvfp4;           ///< for the body of nvfp4_body.hpp, undefined before a launch;
                                  ///< null: another takes its blocks
    block_results blocks;         ///< its requested results per block
    block::exact_totals* totals;  ///< of all segments; initially zeros
    bool parts;
};

/// Segments under recipes, with a warp or half a warp for each pair. Results per block do not
/// include block::block_stats.
struct launch {
    device_values values;
    device_codes codes;
    const device_segment* segments;
    std::uint32_t segment_count;
    const device_recipe* recipes;  ///< of OCP recipes
    std::uint32_t recipe_count;
    std::uint32_t bodies;          ///< a bit for each body that OCP recipes have
    std::uint32_t by_instruction;  ///< bodies that may use the device's instructions: see
                                   ///< bodies_by_instruction
    segment_tally* tallies;        ///< of every segment: see tally_of
    std::uint16_t* marks;          ///< the blocks that bodies of rows leave to other bodies,
                                   ///< marks_per_segment words for each segment: see marks_of
    std::uint32_t marks_per_segment;
    std::uint32_t* marked;  ///< null without marks. The number of segments under a recipe that have
                            ///< marks, then these in any order: see note_marks

    const dialect_recipe* dialects;
    std::uint32_t dialect_count;
    bool powers, floats;   ///< the families of those without an nvfp4_table: see dialect_block.hpp
    bool nvfp4_rows;       ///< whether any has an nvfp4_table
    std::uint64_t stride;  ///< elements of a block: see block_stride
    std::uint8_t* raised;  ///< see raise_exponents; null if no recipe requests it
};

/// The tally and the marks of a segment under recipe `slot`: OCP recipes come first.
MX_HD inline segment_tally& tally_of(const launch& l, std::uint32_t slot, std::uint32_t segment) {
    return l.tallies[std::uint64_t{slot} * l.segment_count + segment];
}
MX_HD inline std::uint16_t* marks_of(const launch& l, std::uint32_t slot, std::uint32_t segment) {
    return l.marks + (std::uint64_t{slot} * l.segment_count + segment) * l.marks_per_segment;
}

/// Adds a segment under recipe `slot`, which has marks, to the list of launch::marked.
MX_HD inline void note_marks(const launch& l, std::uint32_t slot, std::uint32_t segment) {
#if defined(__CUDA_ARCH__)
    const std::uint32_t at = atomicAdd(l.marked, 1u);
#else
    const std::uint32_t at = l.marked[0]++;
#endif
    l.marked[1 + at] = slot * l.segment_count + segment;
}

/// Queues everything on `stream` (a cudaStream_t). Returns the runtime's error code, 0 on success.
int enqueue(const launch& l, void* stream);

/// The widening of a launch, its OCP recipes, rows of the others, and what those leave.
int enqueue_codes(const launch& l, void* stream);
int enqueue_ocp(const launch& l, void* stream);
int enqueue_nvfp4(const launch& l, void* stream);
int enqueue_dialects(const launch& l, void* stream);

}  // namespace mx::codec::cuda
