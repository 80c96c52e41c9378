// SPDX-License-Identifier: Apache-2.0
// The arrays of a set of conformance vectors, in the order in which they are written.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/tensor/dtypes.hpp"

namespace mx::conformance::vectors {

/// One array: unsigned words, a fixed number per block (0: one for all blocks).
struct vector_array {
    std::string_view name;  ///< of the tensor
    std::string_view text;  ///< of the file for $readmemh, without its ending
    tensor::dtype type = tensor::dtype::u8;
    int bits = 8;  ///< that a word uses
    std::size_t per_block = 1;
    bool contract = true;  ///< what an implementation must reproduce; otherwise an input
    std::string_view meaning;
    std::vector<std::uint32_t> words{};
};

/// Which arrays vectors of `r` have: without words, which depend on the inputs.
std::vector<vector_array> arrays_of(const codec::recipe& r);

/// The same with their words.
std::vector<vector_array> arrays_of(const codec::recipe& r, std::span<const float> input,
                                    const conformance::vectors::block_vectors& made);

}  // namespace mx::conformance::vectors
