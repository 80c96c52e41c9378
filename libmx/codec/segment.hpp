// SPDX-License-Identifier: Apache-2.0
// A segment of a block grid (block/view.hpp) in memory, the unit of work of backends.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::codec {

/// Rows of stored numbers, the first element of the first row at `data`.
struct stored_values {
    tensor::dtype type = tensor::dtype::f32;  ///< see is_stored and quantizer::reads
    const std::byte* data = nullptr;          ///< aligned to the element's size
    std::uint64_t stride = 0;  ///< elements from one row to the next; rows begin at whole bytes

    /// The same rows, starting `elements` later, at a whole byte.
    stored_values from(std::uint64_t elements) const {
        return {type, data + tensor::stored_bytes(type, elements), stride};
    }
};

/// f32, bf16 and f16, which every backend reads directly; others are widened to f32 first, unless a
/// quantizer reads them.
constexpr bool is_stored(tensor::dtype type) {
    return type == tensor::dtype::f32 || type == tensor::dtype::bf16 || type == tensor::dtype::f16;
}

/// Where a segment lies: `rows` x `cols` elements of a matrix, cut into blocks from its corner on,
/// so that only the last blocks of an axis can be short. Blocks count along grid rows.
struct segment_place {
    std::uint64_t tensor_id = 0;   ///< base::tensor_id(name)
    std::uint64_t first = 0;       ///< index of the first element in the tensor, C order
    std::uint64_t row_stride = 0;  ///< elements of the tensor from one row to the next
    std::uint64_t rows = 0, cols = 0;
    std::uint64_t block_rows = 1, block_cols = 1;

    MX_HD std::uint64_t grid_rows() const { return (rows + block_rows - 1) / block_rows; }
    MX_HD std::uint64_t grid_cols() const { return (cols + block_cols - 1) / block_cols; }
    MX_HD std::size_t blocks() const { return static_cast<std::size_t>(grid_rows() * grid_cols()); }
    MX_HD std::uint64_t elements() const { return rows * cols; }
    /// Elements of a block that is not short.
    MX_HD std::size_t block_size() const {
        return static_cast<std::size_t>(block_rows * block_cols);
    }
};

/// Results per block, as far as they were asked for (else null). Elements of block b begin at
/// b * stride, row by row; see block_stats for the rest.
struct block_results {
    std::size_t blocks = 0, stride = 0;
    std::uint8_t* codes = nullptr;
    std::uint8_t* scale_code = nullptr;
    std::uint16_t* offset = nullptr;
    std::uint32_t* amax = nullptr;
    std::uint32_t* x_max = nullptr;
    std::uint32_t* x_min = nullptr;
    block::block_stats* stats = nullptr;
    float* values = nullptr;
    const float* inputs = nullptr;

    /// Stores the statistics `s` of block `b`, without codes and values.
    MX_HD void put(std::size_t b, const block::block_stats& s) const {
        if (scale_code == nullptr) return;
        scale_code[b] = s.scale_code;
        offset[b] = s.offset;
        amax[b] = s.amax;
        x_max[b] = s.x_max;
        x_min[b] = s.x_min;
        if (stats != nullptr) stats[b] = s;
    }
};

/// One block of a segment.
struct block_extent {
    std::uint64_t row, col;  ///< of its first element, in the segment
    std::uint64_t rows, cols;
    MX_HD std::size_t size() const { return static_cast<std::size_t>(rows * cols); }
};

MX_HD inline block_extent extent_of(const segment_place& s, std::size_t block) {
    const std::uint64_t across = s.grid_cols();
    const std::uint64_t row = block / across * s.block_rows;
    const std::uint64_t col = block % across * s.block_cols;
    return {row, col, std::min(s.block_rows, s.rows - row), std::min(s.block_cols, s.cols - col)};
}

MX_HD inline block_place place_of(const segment_place& s, const block_extent& b) {
    return {s.tensor_id, s.first + b.row * s.row_stride + b.col, s.row_stride,
            static_cast<int>(b.cols)};
}

}  // namespace mx::codec
