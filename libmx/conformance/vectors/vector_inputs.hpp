// SPDX-License-Identifier: Apache-2.0
// Blocks that are hard to quantize correctly, generated with integers alone: the same bytes on
// every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/codec/recipe.hpp"

namespace mx::conformance::vectors {

/// Kinds of blocks: vector_inputs.cpp has the list.
inline constexpr std::size_t input_category_count = 12;

/// Consecutive blocks and their categories.
struct vector_inputs {
    std::vector<float> values;
    std::vector<std::uint8_t> category;  ///< one per block
    std::vector<std::uint8_t> is_bf16;   ///< one per block: its values are bfloat16 values
};

/// `blocks` blocks for `r`, cycling through the categories. Thresholds and ties are those of the
/// recipe's element format. With a tensor scale, all magnitudes stay within a few binades;
/// otherwise it would make most blocks zero.
vector_inputs generate_inputs(const codec::recipe& r, std::size_t blocks, std::uint64_t seed);

/// The list of categories as text: "0 gaussian; 1 heavy-tailed; ...".
std::string category_text();

}  // namespace mx::conformance::vectors
