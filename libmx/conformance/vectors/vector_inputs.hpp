// SPDX-License-Identifier: Apache-2.0
// Blocks that are hard to quantize right, made from integers alone: the same bytes everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::conformance::vectors {

/// Kinds of blocks: vector_inputs.cpp has the list.
inline constexpr std::size_t input_category_count = 12;

/// Blocks one after the other, and what kind each is.
struct vector_inputs {
    std::vector<float> values;
    std::vector<std::uint8_t> category;  ///< one per block
    std::vector<std::uint8_t> is_bf16;   ///< one per block: its values are bfloat16 values
};

/// `blocks` blocks for `r`, the categories in turn. Thresholds and ties are those of the recipe's
/// element format. With a tensor scale the magnitudes stay within a few binades of each other, or
/// it would send most blocks to zero.
vector_inputs generate_inputs(const codec::recipe& r, std::size_t blocks, std::uint64_t seed);

/// "0 gaussian; 1 heavy-tailed; ...": what the categories are.
std::string category_words();

}  // namespace mx::conformance::vectors
