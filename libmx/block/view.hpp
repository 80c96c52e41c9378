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

}  // namespace mx::block
