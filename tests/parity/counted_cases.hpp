// SPDX-License-Identifier: Apache-2.0
// Matrices under recipes that are counted (codec/word_counts.hpp), and what the reference makes of
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/block/segment_stats.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/codec/recipe.hpp"
#include "tests/parity/segments.hpp"

namespace mx::tests {

struct laid_out {
    codec::value_rectangle values;
    std::vector<codec::placed_segment> segments;
    std::vector<codec::block_params> params;
    std::vector<codec::recipe_request> asked;
};

/// The recipes, all of one block shape, that are counted.
laid_out lay_out(const stored_matrix& m, const std::vector<codec::recipe>& recipes);

/// The totals by recipe.
std::vector<block::segment_stats> by_reference(const laid_out& job);

/// What differs; empty if nothing does.
std::string difference(const block::segment_stats& a, const block::segment_stats& b);

}  // namespace mx::tests
