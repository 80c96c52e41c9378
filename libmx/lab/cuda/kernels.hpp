// SPDX-License-Identifier: Apache-2.0
// Host interface of the kernels of training runs. Pointers are device pointers.
#pragma once

#include <cstdint>

#include "libmx/lab/jobs.hpp"

namespace mx::lab::cuda {

/// As lab::operand_view.
struct device_matrix {
    const float* data;
    std::uint64_t rows;
    bool transposed;
};

/// `count` products of one shape, at most 65535. Matrices of the next one begin `step` numbers
/// later; `b_shared` of them have the same b.
struct product_launch {
    device_matrix a, b;
    std::uint64_t depth;  ///< of both
    float* c;             ///< a.rows x b.rows
    std::uint64_t count = 1, a_step = 0, b_step = 0, c_step = 0, b_shared = 1;
};

/// Queue a kernel on `stream` (a cudaStream_t). Return the runtime's error code, 0 on success.
/// No extent of a product may be 0.
int enqueue(const product_launch& l, void* stream);
int enqueue(const job& what, std::uint64_t count, void* stream);

}  // namespace mx::lab::cuda
