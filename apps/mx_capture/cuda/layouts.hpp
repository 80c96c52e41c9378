// SPDX-License-Identifier: Apache-2.0
// The positions of operands and results of matrix instructions, shared by kernels and tests.
#pragma once

#include <cstdint>

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

// wgmma and tcgen05 read shared memory: K-major without swizzle. A core matrix is 8 rows of 16
// bytes, 128 consecutive bytes; the two core matrices of a slice of K are adjacent, followed by
// those of the next 8 rows.
inline constexpr std::uint32_t core_bytes = 128;
/// The distance from one core matrix to the next along K ("leading dimension byte offset"), and
/// from 8 rows to the next 8 ("stride dimension byte offset").
inline constexpr std::uint32_t leading_bytes = core_bytes;
inline constexpr std::uint32_t stride_bytes = 2 * core_bytes;

/// The word `w` (0 to 7) of row `row` in a step's slice.
MX_HD constexpr std::uint32_t core_offset(std::uint32_t row, std::uint32_t w) {
    return row / 8 * stride_bytes + w / 4 * leading_bytes + row % 8 * 16 + w % 4 * 4;
}

/// The fields that descriptors of wgmma and of tcgen05 share: address, leading and stride offset in
/// units of 16 bytes.
MX_HD constexpr std::uint64_t matrix_descriptor(std::uint32_t address) {
    return static_cast<std::uint64_t>((address & 0x3ffffu) >> 4) |
           static_cast<std::uint64_t>(leading_bytes >> 4) << 16 |
           static_cast<std::uint64_t>(stride_bytes >> 4) << 32;
}

}  // namespace mx::capture
