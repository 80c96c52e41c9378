// SPDX-License-Identifier: Apache-2.0
// Operands of products under their recipes, as values in float32.
#pragma once

#include <cstddef>

#include "libmx/base/aligned.hpp"
#include "libmx/base/random.hpp"
#include "libmx/lab/machine.hpp"
#include "libmx/lab/precision.hpp"
#include "libmx/lab/product.hpp"
#include "libmx/transform/rotation.hpp"

namespace mx::lab {

/// A matrix in C order, and where its random draws come from.
struct matrix_view {
    const float* data;
    std::size_t rows, cols;
    base::random_key key;  ///< seed of the run; tensor and step
};

/// Which axis of the matrix is summed over.
enum class axis : std::uint8_t { last, first };

/// `m` under `rule`: what the codes stand for, rounded once to float32, in `room`; or `m` itself
/// where nothing is done to it. Blocks 1xN lie along the axis that is summed over, blocks Nx1
/// across it, tiles in the matrix as it is. Rotated by `rotate` along that axis first. Draws of
/// stochastic rounding depend on the key, the recipe's seed and the element's place. NaN and Inf
/// make their block what the recipe makes of it (OCP: NaN).
operand_view quantized(machine& on, const operand_rule& rule, const transform::rotation& rotate,
                       const matrix_view& m, axis over, base::aligned_buffer<float>& room);

/// The same laid out as `m` and rotated back: what a copy holds that was quantized along `over`.
const float* quantized_copy(machine& on, const operand_rule& rule,
                            const transform::rotation& rotate, const matrix_view& m, axis over,
                            base::aligned_buffer<float>& room);

/// The product of two matrices under an accumulator model of mx accumulators, c as in multiply().
/// Throws base::error (usage) where the model does not take such operands.
void multiply_by_model(const precision& p, stage which, const matrix_view& a, axis over_a,
                       const matrix_view& b, axis over_b, int threads, float* c);

}  // namespace mx::lab
