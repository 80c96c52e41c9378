// SPDX-License-Identifier: Apache-2.0
// What a recipe makes of blocks that stand one after the other: what `mx vectors` writes and
// `mx verify` compares with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/codec/tensor_scale.hpp"

namespace mx::conformance::vectors {

/// Arrays in the order of the blocks; 32-bit values are float32 bits. Random draws are those of a
/// tensor named "input" whose elements are the blocks in order.
struct block_vectors {
    std::size_t block_elements = 0;
    std::vector<std::uint8_t> scale_code;      ///< one per block
    std::vector<std::uint32_t> scale;          ///< one per block: the scale as a number
    std::vector<std::uint16_t> offset;         ///< one per block: binary16 bits
    std::vector<std::uint8_t> code;            ///< one per element
    std::vector<std::uint32_t> dequant;        ///< one per element
    std::vector<std::uint32_t> element_value;  ///< one per element: what the code stands for
    /// The tensor scale as the dialect stores it, where the recipe has one; from the input.
    std::optional<std::uint32_t> tensor_scale;
    std::vector<std::uint32_t> row_amax;  ///< with row scales, one per row: its largest magnitude
    std::vector<std::uint8_t> pick;       ///< under four-over-six, one per block: 4 or 6

    std::size_t blocks() const { return scale_code.size(); }
};

/// The largest finite magnitude.
codec::tensor_facts facts_of(std::span<const float> values);

/// The elements of a block of `r`.
std::size_t elements_of_block(const codec::recipe& r);

/// Quantizes `input` (whole blocks, row-major within a block). `row_blocks` blocks in sequence are
/// one row of the tensor, which row scales follow from. A recipe with a tensor scale takes it from
/// all of `input`, or from `tensor_scale` (in the dialect's convention). Throws what
/// require_blocks_alone throws.
block_vectors quantize_blocks(const codec::recipe& r, std::span<const float> input,
                              std::size_t row_blocks = 1, std::optional<float> tensor_scale = {});

/// Throws base::error (usage) for a recipe with a transform: rotated groups are no blocks.
void require_blocks_alone(const codec::recipe& r);

/// How many blocks a row of `r` needs: two where the blocks of a row act on each other or share a
/// scale.
std::size_t row_blocks_of(const codec::recipe& r);

}  // namespace mx::conformance::vectors
