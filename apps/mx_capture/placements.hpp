// SPDX-License-Identifier: Apache-2.0
// THE LIST of places where operands of an instruction may lie: what documents say, then the other
// readings of them. No card had decided when this was written, so that the recorder asks the card:
// the first placement that gives known products is used and named in the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mx::capture {

struct instruction;

/// K-major operands of tcgen05 in shared memory.
enum class matrix_layout : std::uint8_t {
    documented,       ///< no swizzle; leading offset along K, stride offset from 8 rows to the next
    offsets_swapped,  ///< the two offsets the other way round
    swizzled,         ///< rows of 32 bytes, 32-byte swizzle
};

/// fp6 and fp4 codes of the kinds that mix widths.
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

/// Where the operands of `i` may lie: as documented, then with one deviation, then with more.
std::vector<placement> placements_of(const instruction& i);

/// "documented", or what deviates: "codes in high bits, scales reversed".
std::string to_string(const placement& p);

}  // namespace mx::capture
