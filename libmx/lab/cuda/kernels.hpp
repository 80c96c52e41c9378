// SPDX-License-Identifier: Apache-2.0
// Host interface of the kernel of a training run's products. Pointers are device pointers.
#pragma once

#include <cstdint>

namespace mx::lab::cuda {

/// As lab::operand_view.
struct device_matrix {
    const float* data;
    std::uint64_t rows;
    bool transposed;
};

struct product_launch {
    device_matrix a, b;
    std::uint64_t depth;  ///< of both
    float* c;             ///< a.rows x b.rows
};

/// Queues the kernel on `stream` (a cudaStream_t). Returns the runtime's error code, 0 on success.
/// No extent may be 0.
int enqueue(const product_launch& l, void* stream);

}  // namespace mx::lab::cuda
