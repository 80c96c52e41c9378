// SPDX-License-Identifier: Apache-2.0
// Quantizes consecutive blocks with a recipe: what `mx vectors` writes and `mx verify` compares
// with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/codec/tensor_scale.hpp"

namespace mx::conformance::vectors {

/// Arrays in block order; 32-bit values are float32 bits. Random draws are those of a tensor named
/// "input" that consists of the blocks in order.
struct block_vectors {
    std::size_t block_elements = 0;
    std::vector<std::uint8_t> scale_code;  ///< one per block
    std::vector<std::uint32_t> scale;      ///< one per block: the scale as a number
    std::vector<std::uint16_t> offset;     ///< one per block: binary16 bits
    std::vector<std::uint8_t> code;        ///< one per element
    std::vector<std::uint32_t> dequant;    ///< one per element
    /// The tensor scale as the dialect stores it, computed from the input; nullopt if the recipe
    /// has none.
    std::optional<std::uint32_t> tensor_scale;
    std::vector<std::uint32_t> row_amax;  ///< with row scales, one per row: its largest magnitude
    std::vector<std::uint8_t> pick;       ///< under four-over-six, one per block: 4 or 6

    std::size_t blocks() const { return scale_code.size(); }
    bool operator==(const block_vectors&) const = default;
};

/// The largest finite magnitude.
codec::tensor_facts facts_of(std::span<const float> values);

/// Elements per block of `r`.
std::size_t elements_of_block(const codec::recipe& r);

/// Quantizes `input` (whole blocks, row-major within a block). `row_blocks` consecutive blocks form
/// one row of the tensor, from which row scales are computed. A recipe with a tensor scale computes
/// it from all of `input` unless `tensor_scale` is given (in the dialect's convention). The result
/// does not depend on `threads` (0: as many as the machine offers). Throws what
/// require_blocks_alone throws.
block_vectors quantize_blocks(const codec::recipe& r, std::span<const float> input,
                              std::size_t row_blocks = 1, std::optional<float> tensor_scale = {},
                              int threads = 0);

/// Throws base::error (usage) for a recipe with a transform: it rotates groups of elements, not
/// blocks.
void require_blocks_alone(const codec::recipe& r);

/// Blocks per row that `r` needs: two if the blocks of a row affect each other or share a scale,
/// else one.
std::size_t row_blocks_of(const codec::recipe& r);

}  // namespace mx::conformance::vectors
