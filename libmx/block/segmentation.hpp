// SPDX-License-Identifier: Apache-2.0
// Which blocks share a segment of the sums: fixed by the block's index in its tensor alone, never
// by panels, threads or other recipes (docs/design/determinism.md).
#pragma once

#include <cstdint>

#include "libmx/block/view.hpp"

namespace mx::block {

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
