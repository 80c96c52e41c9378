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

/// Blocks of `block_rows` x `block_cols`; the last along an axis may be smaller.
struct grid {
    view over;
    std::uint64_t block_rows = 1;
    std::uint64_t block_cols = 1;
    bool whole_rows = false;  ///< blocks of a grid row depend on one another
    /// The number of rows and columns that a transform combines, counted from the first of a
    /// matrix; 1 and 1 without a transform.
    std::uint64_t joint_rows = 1;
    std::uint64_t joint_cols = 1;
    /// Extents of the areas with an outer scale each, multiples of the block's extents or the whole
    /// matrix; 0 and 0 without areas.
    std::uint64_t outer_rows = 0;
    std::uint64_t outer_cols = 0;

    std::uint64_t rows() const { return (over.rows + block_rows - 1) / block_rows; }
    std::uint64_t cols() const { return (over.cols + block_cols - 1) / block_cols; }
    std::uint64_t blocks() const { return over.batch * rows() * cols(); }
    bool has_areas() const { return outer_cols != 0; }
    /// Areas along a column and along a row of a matrix, if there are any.
    std::uint64_t area_rows() const { return (over.rows + outer_rows - 1) / outer_rows; }
    std::uint64_t area_cols() const { return (over.cols + outer_cols - 1) / outer_cols; }
    std::uint64_t areas() const { return over.batch * area_rows() * area_cols(); }
    /// The linear index of the area that contains the block with this index.
    std::uint64_t area_of(std::uint64_t block) const {
        const std::uint64_t line = block / cols();
        const std::uint64_t row = line % rows() * block_rows / outer_rows;
        const std::uint64_t col = block % cols() * block_cols / outer_cols;
        return (line / rows() * area_rows() + row) * area_cols() + col;
    }
    friend bool operator==(const grid&, const grid&) = default;
};

// The segments over which sums are formed. They depend only on the block's index in its tensor,
// never on panels, threads or other recipes (docs/design/determinism.md).

/// Segments are rectangles of the block grid, inside one matrix, aligned to their own extents:
/// a run of `cols` blocks of one grid row when rows are long, several whole grid rows otherwise.
struct segmentation {
    std::uint64_t rows = 1;  ///< grid rows of a segment, a power of two
    std::uint64_t cols = 1;  ///< grid columns of a segment (the whole row where rows > 1)
};

/// The approximate number of elements per segment; one block if blocks are larger, one grid row if
/// the grid requires whole rows. An area with an outer scale is one segment.
inline constexpr std::uint64_t segment_elements = 4096;

/// The segments of a grid.
segmentation segments_of(const grid& g);

}  // namespace mx::block
