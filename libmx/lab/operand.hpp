// SPDX-License-Identifier: Apache-2.0
// Quantized operands of products, decoded to float32. Pointers are to arrays where the context
// computes, unless a function says otherwise.
#pragma once

#include <cstddef>

#include "libmx/base/random.hpp"
#include "libmx/lab/array.hpp"
#include "libmx/lab/execution_context.hpp"
#include "libmx/lab/precision.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::lab {

/// A matrix in C order, and the key of its random draws.
struct matrix_view {
    const float* data;
    std::size_t rows, cols;
    base::random_key key;  ///< seed of the run; tensor and step
};

/// The axis of the matrix that the product sums over.
enum class axis : std::uint8_t { last, first };

/// The decoded values of `given` under `rule`, rounded once to float32, in `buffer`; `given` itself
/// if the rule does nothing. First rotates by `rotate` along the summed axis. 1xN blocks lie along
/// the summed axis, Nx1 blocks across it; tiles are those of the matrix as stored. Draws of
/// stochastic rounding depend on the key, the recipe's seed and the element's position. NaN and Inf
/// affect their block as the recipe says (OCP: the block becomes NaN).
operand_view quantized(execution_context& on, const operand_rule& rule,
                       const transform::rotation& rotate, const matrix_view& given, axis over,
                       array& buffer);

/// The same along the last axis in float64, where products of scales and elements are not rounded
/// (codec::values_of_block). `on` has no device.
operand_view_of<double> quantized(execution_context& on, const operand_rule& rule,
                                  const transform::rotation& rotate, const matrix_view& given,
                                  array_of<double>& buffer);

/// The first in the layout of `m` and with the rotation undone: a copy that was quantized along
/// `over`.
const float* quantized_copy(execution_context& on, const operand_rule& rule,
                            const transform::rotation& rotate, const matrix_view& m, axis over,
                            array& buffer);

/// The product of two matrices of the host under an accumulator model (`mx explain accumulators`);
/// c as in multiply(). Throws base::error (usage) if the model does not support the operands.
void multiply_by_model(const precision& p, stage which, const matrix_view& a, axis over_a,
                       const matrix_view& b, axis over_b, int threads, float* c);

}  // namespace mx::lab
