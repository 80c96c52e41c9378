// SPDX-License-Identifier: Apache-2.0
// Which tensors the cells of a sweep can be compared on: a mean over other tensors than the next
// cell's would say more about the tensors than about the cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libmx/studies/compare/board.hpp"
#include "libmx/studies/compare/cells.hpp"

namespace mx::compare {

struct common_tensors {
    std::vector<std::size_t> tensors;  ///< measured under every cell and the baseline
    /// Of these, what ratios are over: those that no cell quantizes exactly.
    std::vector<std::size_t> compared;
    std::int64_t not_everywhere = 0;  ///< measured under some cells only: left out
    std::int64_t uneven = 0;  ///< of `tensors`: cells count different numbers of their elements,
                              ///< where NaN or Inf or the ends of the scale's range poison blocks
};

/// Whether no tensor of `among` has a figure under a cell.
bool unmeasured(const board& b, const cell& c, std::span<const std::size_t> among,
                std::size_t phase = 0);

/// Chooses from `among` (indices into the board). Cells that no tensor was measured under do not
/// narrow `tensors`, cells without an error in any of these do not narrow `compared`.
common_tensors tensors_in_common(const board& b, const sweep_plan& plan,
                                 std::span<const std::size_t> among, std::size_t phase);

}  // namespace mx::compare
