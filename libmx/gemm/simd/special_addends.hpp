// SPDX-License-Identifier: Apache-2.0
// What NaN and infinity among operands and scales do to a step.
#pragma once

#include <cstddef>

#include "libmx/gemm/simd/kernels.hpp"

namespace mx::gemm::simd {

/// For every column of the tile, what is added to the accumulator that enters step `step` of row
/// `row` so that special operands have their effect: 0, an infinity or NaN. An accumulator that is
/// infinite or NaN goes through a step as such, and packed specials are zeros otherwise.
void special_addends(const panel_tile& t, std::size_t row, std::size_t step, float* addends);

}  // namespace mx::gemm::simd
