// SPDX-License-Identifier: Apache-2.0
// Quantizing one block as a dialect other than ocp does, under a power-of-two scale.
#pragma once

#include <cstdint>
#include <span>

#include "libmx/quantize/block_kernel.hpp"

namespace mx::quantize {

/// As quantize_block. Counts and sums follow the same definitions with the scale S, the codes and
/// the values q of the dialect; y and r are exact. Everything is summed in double. The scale may
/// be NaN or Inf: the finite elements of the block are then `poisoned`.
///
/// A dialect may leave a scale finite beside NaN and Inf elements; these are counted and stay out
/// of rates and sums. A finite element that becomes NaN counts as poisoned.
block::block_stats quantize_dialect_block(const block_params& p, std::span<const float> x,
                                          const block_place& place, std::span<std::uint8_t> codes,
                                          std::span<float> values, bool parts);

/// Dialect systems-scaling, rule floor-bump: for each of the `cols` columns of the blocks of `row`
/// (consecutive blocks, the last one may be short), whether the exponent is raised: the largest
/// magnitude of the column over all blocks exceeds 1.75 * 2^floor(log2 of it). This is the code of
/// KempnerInstitute/systems-scaling@99d244a, whose paper describes one maximum per block.
void bumps_of_row(std::span<const float> row, std::span<std::uint8_t> bump);

}  // namespace mx::quantize
