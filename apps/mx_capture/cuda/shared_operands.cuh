// SPDX-License-Identifier: Apache-2.0
// Operands in shared memory for wgmma and tcgen05.
#pragma once

#include "apps/mx_capture/cuda/kernels.hpp"
#include "apps/mx_capture/cuda/layouts.hpp"

namespace mx::capture {

/// Fills `rows` rows of `steps` steps: zeros except for the `count` rows of the tile, which begin
/// at `first` (possibly outside these rows, in another block). offset(row, w): in bytes.
template <typename Offset>
__device__ inline void fill_operand(std::uint32_t* to, int rows, int steps,
                                    const std::uint32_t* from, int first, int count,
                                    Offset offset) {
    for (int i = static_cast<int>(threadIdx.x); i < steps * rows * 8;
         i += static_cast<int>(blockDim.x)) {
        const int step = i / (rows * 8);
        const int row = i / 8 % rows;
        const int w = i % 8;
        const bool inside = row >= first && row < first + count;
        const std::uint32_t at =
            offset(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(w));
        to[step * rows * 8 + static_cast<int>(at / 4)] =
            inside ? from[(step * count + row - first) * 8 + w] : 0u;
    }
}
__device__ inline void fill_operand(std::uint32_t* to, int rows, int steps,
                                    const std::uint32_t* from, int first, int count) {
    fill_operand(to, rows, steps, from, first, count, core_offset);
}

__device__ inline std::uint32_t shared_address(const void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

}  // namespace mx::capture
