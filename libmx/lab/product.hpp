// SPDX-License-Identifier: Apache-2.0
// Matrix products of training runs: C = A B^T, summed over the last axis of both operands.
#pragma once

#include <cstddef>

#include "libmx/base/aligned.hpp"
#include "libmx/lab/execution_context.hpp"

namespace mx::lab {

/// A matrix operand: element (r, k) is data[r * depth + k] or, if `transposed`, data[k * rows + r].
template <typename T>
struct operand_view_of {
    const T* data;
    std::size_t rows, depth;
    bool transposed = false;
};
using operand_view = operand_view_of<float>;

/// c[i * b.rows + j] = a[i] . b[j], of arrays where `on` computes. Each output is one chain of
/// float32 std::fma(a, b, sum) from +0 in ascending k, for any number of threads and on any device.
/// NaN and Inf propagate as in IEEE 754; every NaN result is base::quiet_nan(). Both operands must
/// have the same depth. Throws base::error (unavailable) if the device of `on` fails.
void multiply(execution_context& on, const operand_view& a, const operand_view& b, float* c);
/// The same, which a device may do at the same time as what is queued until
/// execution_context::join(): that may write none of these operands, and not use `c`.
void multiply_beside(execution_context& on, const operand_view& a, const operand_view& b, float* c);
/// The same in float64, of arrays of the host.
void multiply(execution_context& on, const operand_view_of<double>& a,
              const operand_view_of<double>& b, double* c);

/// A right operand in the order in which the kernels of one context read it, for products with
/// several left ones.
template <typename T>
struct packed_operand {
    std::size_t rows = 0, depth = 0;
    base::aligned_buffer<T> panels;
};
template <typename T>
void pack(const execution_context& on, const operand_view_of<T>& b, packed_operand<T>& to);
/// multiply() on the CPU; `on` has the kernels of the context that packed `b`.
template <typename T>
void multiply(execution_context& on, const operand_view_of<T>& a, const packed_operand<T>& b, T* c);

}  // namespace mx::lab
