// SPDX-License-Identifier: Apache-2.0
// The kernels that count words (codec/word_counts.hpp), and their parameters. All pointers are
// device pointers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mx::codec::cuda {

/// Elements that a lane processes; neighbouring lanes share larger blocks.
inline constexpr std::uint32_t lane_words = 16;

/// A table on the device: of blocks with these largest magnitudes and, apart from zeros, smallest
/// ones. Counter i is of the word with 2 * magnitude + sign = 2 * last + 1 - i.
struct alignas(8) counted_table {
    std::uint16_t last;   ///< the largest magnitude
    std::uint16_t floor;  ///< the first smallest magnitude
    std::uint16_t span;   ///< how many there are from it on
    std::uint16_t unused = 0;
};

struct word_launch {
    /// The blocks, one after the other, from a multiple of 16 bytes on.
    const std::uint16_t* words;
    std::uint32_t blocks;
    std::uint32_t size;             ///< of a block: a power of two, 1 to 32 times lane_words
    const std::uint16_t* table_of;  ///< number of the table by largest magnitude
    const counted_table* tables;    ///< by number; number 0 has span = 0
    std::uint32_t table_count;      ///< with number 0
    std::uint32_t width;            ///< counters of a table
    std::uint32_t* counters;        ///< `width` for each table from number 1 on
    std::uint32_t* counted;         ///< blocks of each table from number 1 on
    /// Output: a bit for each lane_words words, set if their block was not counted.
    std::uint32_t* left;
};

/// Queue a kernel on `stream` (a cudaStream_t). Return the runtime's error code, 0 on success.
int enqueue(const word_launch& l, void* stream);
int enqueue_clear(std::uint32_t* words, std::uint32_t count, void* stream);

}  // namespace mx::codec::cuda
