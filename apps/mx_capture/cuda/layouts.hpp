// SPDX-License-Identifier: Apache-2.0
// The positions of operands and results of matrix instructions, shared by kernels and tests.
#pragma once

#include <cstdint>

#include "apps/mx_capture/placements.hpp"
#include "libmx/base/macros.hpp"

namespace mx::capture {

// mma.sync. In bytes, the fragments of all m16n8 shapes with 32 bytes of K are the same (PTX ISA,
// matrix fragments of mma.m16n8k16 for 16 bits, k8 for tf32, k32 for 8 bits, k64 for 4 bits): lane
// 4 g + t has the words t and t + 4 of the rows g and g + 8 of A and of column g of B.

/// The word of a slice, row * 8 + word, in register `i` of A (0 to 3) of lane `lane`.
MX_HD constexpr int a_word(int lane, int i) {
    return (lane / 4 + i % 2 * 8) * 8 + lane % 4 + i / 2 * 4;
}
/// The word, column * 8 + word, in register `i` of B (0 and 1).
MX_HD constexpr int b_word(int lane, int i) { return lane / 4 * 8 + lane % 4 + i * 4; }
/// The output, row * 8 + column, that is number `i` (0 to 3) of lane `lane`. f16 are two to a
/// register, the even one in the lower half. In wgmma.m64n8 each warp has 16 such rows.
MX_HD constexpr int d_place(int lane, int i) {
    return (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;
}

// wgmma and tcgen05 read shared memory: K-major, as documented without swizzle. A core matrix is 8
// rows of 16 bytes, 128 bytes in a row; the two of a slice of K lie side by side, then those of the
// next 8 rows.
inline constexpr std::uint32_t core_bytes = 128;
/// The distance from one core matrix to the next along K ("leading dimension byte offset"), and
/// from 8 rows to the next 8 ("stride dimension byte offset").
inline constexpr std::uint32_t leading_bytes = core_bytes;
inline constexpr std::uint32_t stride_bytes = 2 * core_bytes;

/// The word `w` (0 to 7) of row `row` in a step's slice, in bytes from its begin. Swizzled: rows of
/// 32 bytes, 8 of them a pattern, in which the 16 bytes change sides from the fifth row on.
MX_HD constexpr std::uint32_t operand_offset(matrix_layout layout, std::uint32_t row,
                                             std::uint32_t w) {
    if (layout == matrix_layout::swizzled) {
        return row * 32 + (w / 4 ^ (row / 4 & 1u)) * 16 + w % 4 * 4;
    }
    return row / 8 * stride_bytes + w / 4 * leading_bytes + row % 8 * 16 + w % 4 * 4;
}

/// The fields that descriptors of wgmma and of tcgen05 share: address, leading and stride offset in
/// units of 16 bytes, and the swizzle: code 3 in bits 62 and 63 of wgmma, 6 from bit 61 on of
/// tcgen05. With it the leading offset is not read.
MX_HD constexpr std::uint64_t matrix_descriptor(matrix_layout layout, std::uint32_t address) {
    constexpr std::uint64_t swizzle_32 = std::uint64_t{3} << 62;
    const auto with = [address](std::uint32_t leading, std::uint32_t stride) {
        return std::uint64_t{(address & 0x3ffffu) >> 4} | std::uint64_t{leading >> 4} << 16 |
               std::uint64_t{stride >> 4} << 32;
    };
    if (layout == matrix_layout::swizzled) return with(16, 8 * 32) | swizzle_32;
    if (layout == matrix_layout::offsets_swapped) return with(stride_bytes, leading_bytes);
    return with(leading_bytes, stride_bytes);
}

}  // namespace mx::capture
