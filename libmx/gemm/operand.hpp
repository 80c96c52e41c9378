// SPDX-License-Identifier: Apache-2.0
// A matrix operand of the multiplier: codes along the reduction axis, with their block scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mx::gemm {

/// The format of a code: a row of the list of operand formats (operand_formats.hpp).
struct operand_format;

/// A of shape M x K, or B of shape N x K: k is contiguous in both (the product is A times B
/// transposed).
struct operand {
    std::size_t rows = 0;
    std::size_t depth = 0;  ///< K
    const operand_format* format = nullptr;
    std::vector<std::uint32_t> codes;  ///< rows x depth, right-aligned

    std::uint32_t scaling = 0;         ///< one bit of scale_set, or 0
    std::size_t scale_block = 0;       ///< elements along k that share a scale; 0: no scales
    std::vector<std::uint8_t> scales;  ///< rows x ceil(depth / scale_block)

    /// Factor of a product after the sum, in float32 (NVFP4's tensor scale); 1: none.
    float tensor_scale = 1.0F;
    /// One for each row in place of tensor_scale; empty: none.
    std::vector<float> row_scales;

    /// What the products of a row are multiplied by after the sum.
    float outer_scale(std::size_t row) const {
        return row_scales.empty() ? tensor_scale : row_scales[row];
    }
};

}  // namespace mx::gemm
