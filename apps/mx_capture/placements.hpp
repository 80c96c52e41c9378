// SPDX-License-Identifier: Apache-2.0
// THE LIST of possible placements of an instruction's operands: the documented one, then other
// readings of the documents. None had been confirmed on hardware when this was written, so the
// recorder tests them: it uses the first placement that gives known products, and names it in the
// file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mx::capture {

struct instruction;

/// K-major operands of wgmma and tcgen05 in shared memory.
enum class matrix_layout : std::uint8_t {
    documented,       ///< no swizzle; leading offset along K, stride offset from 8 rows to the next
    offsets_swapped,  ///< the two offsets the other way round
    swizzled,         ///< rows of 32 bytes, 32-byte swizzle
};

/// fp6 and fp4 codes of the mixed-width kinds.
enum class code_layout : std::uint8_t {
    documented,   ///< tcgen05: 16 in the beginning of 16 bytes; mma.sync: a byte, fp4 in its middle
    low_bits,     ///< a byte each, in its low bits
    middle_bits,  ///< a byte each, two bits up
    high_bits,    ///< a byte each, in its high bits
    packed,       ///< 16 in the beginning of 16 bytes
};

/// Scales: tensor memory of tcgen05, registers of mma.sync.
enum class scale_layout : std::uint8_t {
    documented,   ///< row r in lane r % 32, column r / 32; registers: lanes 4 g and 4 g + 1
    other_lanes,  ///< row r in lane r; registers: lane 4 g + 1 has row g
    other_pairs,  ///< of a pair of blocks each has the columns of its own half; registers: 4 g + 2
    reversed,     ///< the bytes of a word from the other end
};

/// f16 accumulators in the 32 bits of a column.
enum class result_layout : std::uint8_t { documented, high_half };

struct placement {
    matrix_layout matrix = matrix_layout::documented;
    code_layout codes = code_layout::documented;
    scale_layout scales = scale_layout::documented;
    result_layout results = result_layout::documented;
};

/// Possible placements of the operands of `i`: as documented, then with one deviation, then with
/// more.
std::vector<placement> placements_of(const instruction& i);

/// "documented", or the deviations: "codes in high bits, scales reversed".
std::string to_string(const placement& p);

}  // namespace mx::capture
