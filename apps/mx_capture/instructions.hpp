// SPDX-License-Identifier: Apache-2.0
// THE LIST of recorded matrix instructions by chip, and the layouts of their operands.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/mx_capture/chips.hpp"
#include "apps/mx_capture/placements.hpp"
#include "libmx/conformance/vectors/mma_inputs.hpp"

namespace mx::capture {

namespace vectors = conformance::vectors;

/// The unit that reads the operands, and from which memory.
enum class unit : std::uint8_t {
    mma_sync,  ///< registers of a warp
    wgmma,     ///< shared memory
    tcgen05,   ///< shared memory; accumulators and scales in tensor memory
};

struct instruction {
    std::string name;  ///< of files: "tcgen05.f8f6f4.e4m3.e5m2.f32"
    std::string ptx;   ///< what finds its kernel
    unit by = unit::mma_sync;
    vectors::mma_case what;        ///< of a single instruction
    std::uint32_t descriptor = 0;  ///< tcgen05: the instruction descriptor
    placement where{};             ///< of its operands

    /// Whether it has a flag to ignore the accumulator.
    bool can_discard() const { return by != unit::mma_sync; }
};

/// Every instruction that `c` has.
std::vector<instruction> instructions_of(const chip& c);

/// tcgen05.mma computes 128 x 16 outputs (a pair of blocks twice as many rows and columns), wgmma
/// 64 x 8: a tile uses some of them.
inline constexpr std::size_t tcgen05_rows = 128;
inline constexpr std::size_t tcgen05_columns = 16;

/// Bytes of K per row in one instruction, for any element format.
inline constexpr std::size_t slice_bytes = 32;

/// `codes` (rows x depth) in the instruction's layout: steps x rows x slice_bytes.
std::vector<std::uint8_t> packed_slices(const instruction& i, const gemm::operand_format& format,
                                        std::span<const std::uint32_t> codes, std::size_t rows,
                                        std::size_t steps);

/// `scales` (rows x blocks) as words: steps x rows, the first block of a step in the lowest byte.
/// Fewer than four are repeated, so that any selected bytes contain them.
std::vector<std::uint32_t> packed_scales(const vectors::mma_case& what,
                                         std::span<const std::uint8_t> scales, std::size_t rows,
                                         std::size_t steps);

}  // namespace mx::capture
