// SPDX-License-Identifier: Apache-2.0
// What became of values under recipes, from the counts of their words.
#pragma once

#include <span>
#include <vector>

#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/word_counts.hpp"

namespace mx::codec {

/// The totals by recipe of all that `parts`, which have the same type and recipes, counted: what
/// the reference finds for these blocks.
std::vector<block::segment_stats> counted_totals(std::span<const word_counts* const> parts);

}  // namespace mx::codec
