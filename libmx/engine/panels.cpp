// SPDX-License-Identifier: Apache-2.0
#include "libmx/engine/panels.hpp"

#include <algorithm>
#include <numeric>

#include "libmx/base/scaled.hpp"

namespace mx::engine {
namespace {

std::uint64_t steps(std::uint64_t extent, std::uint64_t step) { return (extent + step - 1) / step; }

// Least common multiple, cut off at the extent: a panel as large as the axis suits everything.
std::uint64_t joint(std::uint64_t a, std::uint64_t b, std::uint64_t extent) {
    if (a >= extent || b >= extent) return extent;
    const std::uint64_t factor = a / std::gcd(a, b);
    return factor > extent / b ? extent : factor * b;
}

// A column of a tall block is read in pieces; narrower ones would be all system calls.
constexpr std::uint64_t least_cols = 64;

}  // namespace

panel_plan::panel_plan(const block::view& v, std::span<const block::grid> grids,
                       std::uint64_t target)
    : view_(v) {
    if (v.elements() == 0) return;
    for (const block::grid& g : grids) {
        const block::segmentation s = block::segments_of(g);
        unit_rows_ = joint(unit_rows_, s.rows * g.block_rows, v.rows);
        unit_cols_ = joint(unit_cols_, s.cols * g.block_cols, v.cols);
        unit_rows_ = joint(unit_rows_, g.joint_rows, v.rows);
        unit_cols_ = joint(unit_cols_, g.joint_cols, v.cols);
    }
    const std::uint64_t fit = std::max<std::uint64_t>(1, 4 * target / unit_rows_);
    if (unit_cols_ >= v.cols || v.cols <= fit) {
        cols_ = v.cols;
    } else {
        const std::uint64_t want =
            std::max(target / unit_rows_,
                     std::min(least_cols, std::max<std::uint64_t>(1, panel_limit / unit_rows_)));
        cols_ = std::min(v.cols, unit_cols_ * std::max<std::uint64_t>(1, want / unit_cols_));
    }
    const std::uint64_t tall = target / (cols_ * unit_rows_);
    rows_ = std::min(v.rows, unit_rows_ * std::max<std::uint64_t>(1, tall));
    if (rows_ == v.rows && cols_ == v.cols) {
        batches_ = std::clamp<std::uint64_t>(target / (rows_ * cols_), 1, v.batch);
    }
    batch_steps_ = steps(v.batch, batches_);
    row_steps_ = steps(v.rows, rows_);
    col_steps_ = steps(v.cols, cols_);
    last_ = batch_steps_ * row_steps_ * col_steps_;
}

void panel_plan::keep_range(std::uint64_t first, std::uint64_t end, std::uint64_t whole) {
    const std::uint64_t all = count();
    first_ = base::scaled_up(all, first, whole);
    last_ = base::scaled_up(all, end, whole);
}

std::uint64_t panel_plan::elements() const {
    if (count() == batch_steps_ * row_steps_ * col_steps_) return view_.elements();
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count(); ++i) sum += at(i).elements();
    return sum;
}

panel panel_plan::at(std::uint64_t index) const {
    index += first_;
    panel p{};
    p.col = index % col_steps_ * cols_;
    p.row = index / col_steps_ % row_steps_ * rows_;
    p.batch = index / col_steps_ / row_steps_ * batches_;
    p.cols = std::min(cols_, view_.cols - p.col);
    p.rows = std::min(rows_, view_.rows - p.row);
    p.batches = std::min(batches_, view_.batch - p.batch);
    return p;
}

}  // namespace mx::engine
