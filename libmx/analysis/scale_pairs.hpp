// SPDX-License-Identifier: Apache-2.0
// How often recipes of one block shape choose different scale bytes, pair by pair, counted while
// the blocks are quantized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace mx::analysis {

/// The index in rosetta_counts::pairs of recipes a < b of n.
constexpr std::size_t pair_index(std::size_t a, std::size_t b, std::size_t n) {
    return a * n - a * (a + 1) / 2 + b - a - 1;
}

/// Blocks of n recipes and, for the pairs (0,1), (0,2), .., (n-2,n-1), those whose bytes differ.
struct scale_pairs {
    std::uint64_t blocks = 0;
    std::vector<std::uint64_t> differ;

    explicit scale_pairs(std::size_t recipes = 0) : differ(recipes * (recipes - 1) / 2) {}
    void merge(const scale_pairs& other);
};

/// The pairs of one tensor; several threads add to them.
struct shared_scale_pairs {
    explicit shared_scale_pairs(std::size_t recipes) : members(recipes), pairs(recipes) {}
    std::size_t members;
    std::mutex guard;
    scale_pairs pairs;
};

/// What one thread has seen of the segment it works on. All members of a group lie over the same
/// blocks and are seen between two calls of end_segment.
class scale_watch {
  public:
    /// The scale bytes of member `member` in the segment.
    void see(shared_scale_pairs& group, std::size_t member, std::span<const std::uint8_t> codes);
    /// Compares what was seen since the last call.
    void end_segment();
    /// Adds what was counted to the groups.
    void flush();

  private:
    struct seen_group {
        shared_scale_pairs* to;
        scale_pairs pairs;
        std::vector<std::vector<std::uint8_t>> codes;  // by member
        bool fresh = false;
    };
    std::vector<seen_group> groups_;
};

}  // namespace mx::analysis
