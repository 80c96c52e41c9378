// SPDX-License-Identifier: Apache-2.0
// Results of quantization, computed from counts of words.
#pragma once

#include <span>
#include <vector>

#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/word_counts.hpp"

namespace mx::engine {

/// The totals by recipe of everything counted in `parts`, which must have the same type and
/// recipes. Equal to the results of the reference for these blocks.
std::vector<block::segment_stats> counted_totals(std::span<const codec::word_counts* const> parts);

}  // namespace mx::engine
