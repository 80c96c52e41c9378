// SPDX-License-Identifier: Apache-2.0
// Panels: the rectangles of a tensor that are read and worked on at a time. They hold whole
// segments and rotated groups of every grid of a pass, so results do not depend on how a tensor was
// divided.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmx/block/view.hpp"

namespace mx::engine {

/// Rows x columns of `batches` consecutive matrices (whole matrices when batches > 1).
struct panel {
    std::uint64_t batch, batches;
    std::uint64_t row, rows;
    std::uint64_t col, cols;
    std::uint64_t elements() const { return batches * rows * cols; }
};

/// Elements a panel aims at: a few passes of it fit a core's private cache.
inline constexpr std::uint64_t panel_target = std::uint64_t{1} << 17;
/// The same where a device works on a panel at a time: enough segments to fill it.
inline constexpr std::uint64_t device_panel_target = std::uint64_t{1} << 22;
/// Elements beyond which recipes with ill-matched block sizes no longer share panels.
inline constexpr std::uint64_t panel_limit = std::uint64_t{1} << 21;

/// A division of a view into panels.
class panel_plan {
  public:
    /// Panels whose sides are multiples of the segments of all `grids` (which lie over `v`), and of
    /// what their transforms keep together.
    panel_plan(const block::view& v, std::span<const block::grid> grids,
               std::uint64_t target = panel_target);

    /// Elements of the smallest panel that suits all grids.
    std::uint64_t unit_elements() const { return unit_rows_ * unit_cols_; }
    std::uint64_t count() const { return last_ - first_; }
    panel at(std::uint64_t index) const;
    /// Leaves those panels that are the range [first, end) of `whole`: neighbouring ranges leave
    /// out none and have none in common. Once.
    void keep_range(std::uint64_t first, std::uint64_t end, std::uint64_t whole);
    /// Elements of the panels.
    std::uint64_t elements() const;
    const block::view& over() const { return view_; }

  private:
    block::view view_;
    std::uint64_t unit_rows_ = 1, unit_cols_ = 1;
    std::uint64_t batches_ = 1, rows_ = 1, cols_ = 1;  // extents of a panel
    std::uint64_t batch_steps_ = 0, row_steps_ = 0, col_steps_ = 0;
    std::uint64_t first_ = 0, last_ = 0;  // indices of the panels that are left
};

/// One segment inside a panel.
struct segment_in_panel {
    std::uint64_t index;       ///< linear index of its first block in the tensor's block grid
    std::uint64_t first;       ///< linear index of its first element in the tensor
    std::uint64_t batch;       ///< of the panel: its first matrix is 0
    std::uint64_t row, col;    ///< of its first element, in that matrix of the panel
    std::uint64_t rows, cols;  ///< extents in elements
};

/// Calls on_segment for every segment of `g` in `where`, in a fixed order.
template <typename OnSegment>
void for_each_segment(const block::grid& g, const panel& where, OnSegment&& on_segment) {
    const block::segmentation s = block::segments_of(g);
    const std::uint64_t tall = s.rows * g.block_rows;
    const std::uint64_t wide = s.cols * g.block_cols;
    const auto smaller = [](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; };
    for (std::uint64_t b = 0; b < where.batches; ++b) {
        const std::uint64_t matrix = where.batch + b;
        for (std::uint64_t r = 0; r < where.rows; r += tall) {
            for (std::uint64_t c = 0; c < where.cols; c += wide) {
                const std::uint64_t row = where.row + r;
                const std::uint64_t col = where.col + c;
                const std::uint64_t grid_row = matrix * g.rows() + row / g.block_rows;
                on_segment(segment_in_panel{grid_row * g.cols() + col / g.block_cols,
                                            (matrix * g.over.rows + row) * g.over.cols + col, b, r,
                                            c, smaller(tall, where.rows - r),
                                            smaller(wide, where.cols - c)});
            }
        }
    }
}

}  // namespace mx::engine
