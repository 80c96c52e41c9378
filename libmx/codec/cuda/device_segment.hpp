// SPDX-License-Identifier: Apache-2.0
// What a kernel is told of a segment and where it writes: trivially copyable, no ownership.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/block/block_stats.hpp"
#include "libmx/block/segment_stats.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::codec::cuda {

/// A segment among values that lie row by row. Sides and counts fit 32 bits: a segment holds some
/// 4096 elements, or one block (segmentation.hpp).
struct device_segment {
    std::uint64_t at;          ///< of its first element among the values
    std::uint64_t first;       ///< of its first element in the tensor, C order
    std::uint64_t row_stride;  ///< elements of the tensor from one row to the next
    std::uint64_t tensor_id;
    std::uint64_t first_block;  ///< of its blocks among those of the batch
    std::uint32_t rows, cols;
    std::uint32_t block_rows, block_cols;
};

/// Values on the device: f32, bf16 or f16, the first at a multiple of 16 bytes.
struct device_values {
    const std::byte* data;
    std::uint64_t stride;  ///< elements from one row to the next
    tensor::dtype type;
};

/// What is written per block, as far as pointers are not null: block b of the batch at index b, its
/// codes at b * block_stride.
struct device_blocks {
    std::uint8_t* codes;
    std::uint8_t* scale_code;
    std::uint16_t* offset;
    std::uint32_t* amax;
    std::uint32_t* x_max;
    std::uint32_t* x_min;
    block::block_stats* stats;
    std::uint64_t stride;  ///< codes of a block: see block_stride
};

}  // namespace mx::codec::cuda
