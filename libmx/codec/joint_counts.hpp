// SPDX-License-Identifier: Apache-2.0
// Counting for blocks of 32 and of 16, as MX and NVFP4 have them, in one pass: each element is
// counted once, by the tables of both its blocks, instead of twice.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libmx/codec/word_counts.hpp"

namespace mx::codec {

/// The output of a pass over blocks with two halves each.
class joint_tables {
  public:
    static constexpr std::size_t block_size = 32, half_size = 16;

    virtual ~joint_tables() = default;

    /// Finds the counters of both halves and counts the blocks; the elements are left to the
    /// caller. False: everything was counted. `least`: the smallest magnitudes that are not zero.
    bool enter(const std::uint16_t* words, const std::uint16_t (&largest)[2],
               const std::uint16_t (&least)[2], std::uint32_t* (&counters)[2]) {
        const std::uint16_t most = std::max(largest[0], largest[1]);
        const std::uint16_t fewest = std::min(least[0], least[1]);
        const std::uint16_t number = blocks->table_of[most];
        word_table& whole = blocks->tables[number];
        word_table* half[2];
        bool joined = fewest < whole.near;
        for (std::size_t h = 0; h < 2; ++h) {
            const std::uint16_t own = halves->table_of[largest[h]];
            half[h] = &halves->tables[own];
            counters[h] = found[number * std::size_t{tables_at_most} + own];
            joined = joined && least[h] < half[h]->near;
        }
        const bool known = counters[0] != nullptr && counters[1] != nullptr;
        if (!joined || (!known && !find(number, largest, counters))) {
            count_apart(words);
            return false;
        }
        whole.add_block(most, fewest);
        for (std::size_t h = 0; h < 2; ++h) half[h]->add_block(largest[h], least[h]);
        return true;
    }

  protected:
    static constexpr std::size_t tables_at_most = word_tables::most + 1;

    /// Finds or makes the counters; false: there is no room for them.
    virtual bool find(std::uint16_t block, const std::uint16_t (&largest)[2],
                      std::uint32_t* (&counters)[2]) = 0;
    /// Counts a block and its halves in their own tables.
    virtual void count_apart(const std::uint16_t* words) = 0;

    word_tables *blocks = nullptr, *halves = nullptr;
    std::uint32_t** found = nullptr;  ///< by numbers of the block's table and of the half's
};

/// Counts `blocks` consecutive blocks.
using joint_pass = void (*)(const std::uint16_t* words, std::size_t blocks, joint_tables& to);

/// The portable implementation.
void count_jointly(const std::uint16_t* words, std::size_t blocks, joint_tables& to);

/// The passes of an instruction set; null: there are none.
struct word_passes {
    word_pass one = nullptr;
    joint_pass joint = nullptr;
};

/// What one thread counts for two word_counts. Reused for all tensors.
class joint_counts final : private joint_tables {
  public:
    using joint_tables::block_size, joint_tables::half_size;

    explicit joint_counts(joint_pass pass);

    /// Begins to count for blocks of 32 and of 16 elements of a row. Both must outlive settle().
    void begin(word_counts& blocks, word_counts& halves);
    /// As word_counts::add; the segments are those of the blocks of 32.
    void add(const value_rectangle& values, std::span<const placed_segment> segments,
             const std::atomic<bool>* cancel);
    /// Whether further values should be counted for each block size on its own.
    bool full() const;
    /// Adds the counts to those given to begin(), which are then complete.
    void settle();

  private:
    struct joint_table {
        std::uint16_t block, half;  // numbers
        std::uint32_t* count;
    };
    bool find(std::uint16_t block, const std::uint16_t (&largest)[2],
              std::uint32_t* (&counters)[2]) override;
    void count_apart(const std::uint16_t* words) override;

    joint_pass pass_;
    word_counts *blocks_ = nullptr, *halves_ = nullptr;
    std::vector<std::uint32_t*> found_;
    std::vector<joint_table> tables_;
    counter_buffer counters_;
};

}  // namespace mx::codec
