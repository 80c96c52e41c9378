// SPDX-License-Identifier: Apache-2.0
// Host interface of the kernel of emulated products. Pointers are device pointers.
#pragma once

#include <cstdint>

#include "libmx/gemm/engine.hpp"
#include "libmx/gemm/one_step.hpp"

namespace mx::gemm::cuda {

/// Longer steps do not fit in a multiprocessor's shared memory.
inline constexpr int longest_step = 128;

/// An unpacked operand on the device.
struct device_operand {
    const factor* factors;
    const scale_factor* scales;
    std::uint64_t depth;   ///< factors of a row
    std::uint64_t groups;  ///< scales of a row
};

struct tile_launch {
    step_kind kind;
    device_operand a, b;
    tile where;
    step_range steps;
    std::uint32_t* acc;  ///< where.rows x where.cols
};

/// Queues the kernel on `stream` (a cudaStream_t). Returns the runtime's error code, 0 on success.
int enqueue(const tile_launch& l, void* stream);

}  // namespace mx::gemm::cuda
