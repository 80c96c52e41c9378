// SPDX-License-Identifier: Apache-2.0
// A tensor as a stack of matrices, and the grid of blocks over it.
#pragma once

#include <cstdint>

#include "libmx/tensor/shape.hpp"

namespace mx::block {

/// `batch` matrices of `rows` x `cols`, elements in C order. Blocks never cross a matrix.
struct view {
    std::uint64_t batch = 0;
    std::uint64_t rows = 0;
    std::uint64_t cols = 0;
    std::uint64_t elements() const { return batch * rows * cols; }
    friend bool operator==(const view&, const view&) = default;
};

/// Blocks of `block_rows` x `block_cols`; the last of an axis may be short.
struct grid {
    view over;
    std::uint64_t block_rows = 1;
    std::uint64_t block_cols = 1;
    bool whole_rows = false;  ///< blocks of a grid row depend on one another
    /// How many rows and columns a transform keeps together, counted from the first one of a
    /// matrix; 1 and 1 without.
    std::uint64_t joint_rows = 1;
    std::uint64_t joint_cols = 1;

    std::uint64_t rows() const { return (over.rows + block_rows - 1) / block_rows; }
    std::uint64_t cols() const { return (over.cols + block_cols - 1) / block_cols; }
    std::uint64_t blocks() const { return over.batch * rows() * cols(); }
    friend bool operator==(const grid&, const grid&) = default;
};

// Which blocks share a segment of the sums: fixed by the block's index in its tensor alone, never
// by panels, threads or other recipes (docs/design/determinism.md).

/// Segments are rectangles of the block grid, inside one matrix, aligned to their own extents:
/// a run of `cols` blocks of one grid row when rows are long, several whole grid rows otherwise.
struct segmentation {
    std::uint64_t rows = 1;  ///< grid rows of a segment, a power of two
    std::uint64_t cols = 1;  ///< grid columns of a segment (the whole row where rows > 1)
};

/// About this many elements share a segment (one block, where a block holds more; one grid row,
/// where the grid asks for whole rows).
inline constexpr std::uint64_t segment_elements = 4096;

/// The segments of a grid.
segmentation segments_of(const grid& g);

}  // namespace mx::block
