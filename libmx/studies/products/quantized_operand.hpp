// SPDX-License-Identifier: Apache-2.0
// A matrix under its recipe, along the axis that a product sums over, in every form that an
// accumulator model may take it.
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
    /// What the codes stand for, scales included, rounded once to float32; rows x depth.
    std::vector<float> values;
    /// Codes and block scales; of recipes whose codes and scales no model takes, and of those whose
    /// dialect returns values that their codes do not have, format is null.
    /// The same of outer scales that differ along the axis that is summed over.
    gemm::operand coded;
    bool scaled_along_k = false;  ///< whether that is why
    value_errors error;           ///< of `values` against the values that were quantized
};

/// Quantizes `m`, of which axis `over` is summed over, after rotating it by `rotate` along that
/// axis. Blocks 1xN lie along it, blocks Nx1 across it; tiles lie in the matrix as it is stored.
/// Rows, columns and tiles with an outer scale each lie as the blocks do: those of 1xN blocks in
/// the operand, whose rows run along k. Random draws are keyed by an element's place in the stored
/// tensor, as in `mx quantize`; the bytes do not depend on threads. Throws base::error (usage)
/// where too many elements share an outer scale.
quantized_operand quantize_operand(const matrix& m, reduction over, const operand_recipe& recipe,
                                   const transform::rotation& rotate,
                                   const engine::run_control& control);

/// The dequantized values of an operand laid out and rotated back as its matrix was.
std::vector<float> values_as_stored(const quantized_operand& q, reduction over);

}  // namespace mx::products
