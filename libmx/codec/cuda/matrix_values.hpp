// SPDX-License-Identifier: Apache-2.0
// The values of quantized blocks, from codes to their places in a matrix: on a device that keeps
// them there. A thread places one.
#pragma once

#include <cstdint>

#include "libmx/base/half.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/plain_block.hpp"

namespace mx::codec::cuda {

/// Consecutive rows of a matrix, and their results from a launch with one recipe, whose segments
/// are whole rows of blocks.
struct matrix_values {
    const device_recipe* plain;  ///< the recipe; null if `blocks` has values
    block_results blocks;
    std::uint64_t rows, cols;
    std::uint32_t block_rows, block_cols;
    float* to;  ///< of the first element
    std::uint64_t row_step, col_step;
};

/// Places element (row, col): O + S q, rounded to float32 once; NaN under a NaN scale.
MX_HD inline void place_value(const matrix_values& m, std::uint64_t row, std::uint64_t col) {
    const std::uint64_t across = (m.cols + m.block_cols - 1) / m.block_cols;
    const std::uint64_t block_row = row / m.block_rows, block_col = col / m.block_cols;
    const std::uint64_t block = block_row * across + block_col;
    const std::uint64_t left = m.cols - block_col * m.block_cols;
    const std::uint64_t wide = left < m.block_cols ? left : m.block_cols;
    const std::uint64_t at = block * m.blocks.stride + (row - block_row * m.block_rows) * wide +
                             (col - block_col * m.block_cols);
    float& to = m.to[row * m.row_step + col * m.col_step];
    if (m.plain == nullptr) {
        to = m.blocks.values[at];
        return;
    }
    const plain_params& p = m.plain->params;
    const float scale = scale_of_code(m.blocks.scale_code[block]);
    const float q = p.value[m.blocks.codes[at]];
    if (!p.has_offset) {
        to = scale * q;
        return;
    }
    const float offset = base::float_from_half(m.blocks.offset[block]);
    to = static_cast<float>(static_cast<double>(offset) +
                            static_cast<double>(scale) * static_cast<double>(q));
}

/// Queues it on `stream` (a cudaStream_t). Returns the runtime's error code, 0 on success.
int enqueue(const matrix_values& m, void* stream);

}  // namespace mx::codec::cuda
