// SPDX-License-Identifier: Apache-2.0
// Operands in shared memory for wgmma and tcgen05: K-major without swizzle. A core matrix is 8 rows
// of 16 bytes, 128 bytes in a row; the two of a slice of K lie side by side, then those of the next
// 8 rows.
#pragma once

#include "apps/mx_capture/cuda/kernels.hpp"

namespace mx::capture {

inline constexpr std::uint32_t core_bytes = 128;
/// From one core matrix to the next along K ("leading dimension byte offset"), and from 8 rows to
/// the next 8 ("stride dimension byte offset").
inline constexpr std::uint32_t leading_bytes = core_bytes;
inline constexpr std::uint32_t stride_bytes = 2 * core_bytes;

/// The word `w` (0 to 7) of row `row` in a step's slice.
__device__ inline std::uint32_t core_offset(std::uint32_t row, std::uint32_t w) {
    return row / 8 * stride_bytes + w / 4 * leading_bytes + row % 8 * 16 + w % 4 * 4;
}

/// Fills `rows` rows of `steps` steps: zeros but for `count` rows of the tile, which begin at
/// `first` (before or behind these rows: they are another block's). offset(row, w): in bytes.
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

/// The fields that descriptors of wgmma and of tcgen05 share: address, leading and stride offset in
/// units of 16 bytes.
__device__ inline std::uint64_t matrix_descriptor(std::uint32_t address) {
    return static_cast<std::uint64_t>((address & 0x3ffffu) >> 4) |
           static_cast<std::uint64_t>(leading_bytes >> 4) << 16 |
           static_cast<std::uint64_t>(stride_bytes >> 4) << 32;
}

}  // namespace mx::capture
