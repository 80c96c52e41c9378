// SPDX-License-Identifier: Apache-2.0
// Products of a training: C = A B^T, both operands with the axis that is summed over last.
#pragma once

#include <cstddef>

#include "libmx/lab/machine.hpp"

namespace mx::lab {

/// A matrix as a product reads it: element (r, k) at data[r * depth + k], or, `transposed`, at
/// data[k * rows + r].
struct operand_view {
    const float* data;
    std::size_t rows, depth;
    bool transposed = false;
};

/// c[i * b.rows + j] = a[i] . b[j], each one chain of float32 fused multiply-adds from +0 in
/// ascending k, whatever the number of threads: std::fma(a, b, sum). NaN and Inf go through it as
/// IEEE 754 says. The depths are alike.
void multiply(machine& on, const operand_view& a, const operand_view& b, float* c);

}  // namespace mx::lab
