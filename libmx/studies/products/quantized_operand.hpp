// SPDX-License-Identifier: Apache-2.0
// A matrix quantized along the summed axis of a product, in every form that accumulator models
// take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"
#include "libmx/studies/products/matrix.hpp"
#include "libmx/studies/products/operand_recipe.hpp"
#include "libmx/studies/products/value_errors.hpp"

namespace mx::products {

struct quantized_operand {
    operand_recipe recipe;
    transform::rotation rotated;  ///< along the axis that is summed over
    std::size_t rows = 0, depth = 0;
    /// The decoded values including scales, rounded once to float32; rows x depth.
    std::vector<float> values;
    /// Codes and block scales. `format` is null if no model takes such codes and scales, if outer
    /// scales differ along the summed axis, or if the dialect's decoded values differ from its
    /// codes.
    gemm::operand coded;
    bool scaled_along_k = false;  ///< whether outer scales differ along k
    value_errors error;           ///< of `values` against the values that were quantized
};

/// Rotates `m` along the summed axis `over` by `rotate`, then quantizes it. 1xN blocks lie along
/// that axis, Nx1 blocks across it; tiles are those of the stored matrix. Rows, columns and tiles
/// with an outer scale lie as the blocks do: with 1xN blocks, those of the operand, whose rows run
/// along k. Random draws are keyed by the element's position in the stored tensor, as in `mx
/// quantize`. The result does not depend on threads. Throws base::error (usage) if too many
/// elements share an outer scale.
quantized_operand quantize_operand(const matrix& m, reduction over, const operand_recipe& recipe,
                                   const transform::rotation& rotate,
                                   const engine::run_control& control);

/// The dequantized values of an operand in the layout of its matrix, with the rotation undone.
std::vector<float> values_as_stored(const quantized_operand& q, reduction over);

}  // namespace mx::products
