// SPDX-License-Identifier: Apache-2.0
// Values of one dump against the same values of the next.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/studies/diff/figures.hpp"

namespace mx::diff {

/// Adds a segment, `rows` x `cols` values whose rows begin `stride` apart in both dumps. Its sums
/// are doubles: column c of the segment adds to lane c mod 8, row by row; then the lanes pairwise
/// at distance 4, 2, 1.
void add_values(const float* a, const float* b, std::uint64_t rows, std::uint64_t cols,
                std::uint64_t stride, value_figures& to);

}  // namespace mx::diff
