// SPDX-License-Identifier: Apache-2.0
// What the blocks of one segment (view.hpp) add up to. This is what a backend delivers, and
// the last level of sums whose additions have an order (docs/design/determinism.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/block/block_stats.hpp"

namespace mx::block {

/// Counts over elements; see block_counts.
struct element_counts {
    std::uint64_t elements, nan, inf, poisoned, nonzero;
    std::uint64_t overflow, clamp, top_code, underflow, subnormal, dequant_overflow;

    MX_HD element_counts& operator+=(const element_counts& other) {
        each_count(plus{}, *this, other);
        dequant_overflow += other.dequant_overflow;
        return *this;
    }
};

/// Counts over blocks; see block_flags.
struct block_tallies {
    std::uint64_t blocks, zero, eligible, collapsed, saturated, dead;

    MX_HD block_tallies& operator+=(const block_tallies& other) {
        blocks += other.blocks;
        each_flag(plus{}, *this, other);
        return *this;
    }
};

struct segment_stats {
    element_counts count;
    block_tallies block;
    block_sums sum;
    block_parts part;           ///< zeros unless they are asked for
    std::uint32_t counted_max;  ///< float32 bits of max |x| over what sums are over
};

/// Sums of blocks on their way to the sum of a segment: block i of the segment adds to lane i mod
/// 16, in order; at the end the lanes are added pairwise at distance 8, 4, 2, 1.
struct segment_lanes {
    static constexpr std::size_t count = 16;
    using lanes = std::array<double, count>;
    alignas(64) lanes error2{};
    alignas(64) lanes x2{};
    alignas(64) lanes xd{};
    alignas(64) lanes d2{};
    alignas(64) lanes error{};
    double max_error = 0;

    void add(std::size_t lane, const block_sums& b) {
        each_sum([lane](lanes& to, double v) { to[lane] += v; }, *this, b);
        max_error = max_error < b.max_error ? b.max_error : max_error;
    }
    block_sums sum() const;
};

/// The same for the parts of the squared error.
struct part_lanes {
    using lanes = segment_lanes::lanes;
    alignas(64) lanes clamp_error2{};
    alignas(64) lanes underflow_error2{};
    alignas(64) lanes grid_error2{};

    void add(std::size_t lane, const block_parts& b) {
        clamp_error2[lane] += b.clamp_error2;
        underflow_error2[lane] += b.underflow_error2;
        grid_error2[lane] += b.grid_error2;
    }
    block_parts sum() const;
};

/// Counts (and the maximum) of one block added to those of its segment.
MX_HD inline void add_counts(segment_stats& to, const block_stats& b) {
    each_count(plus{}, to.count, b.count);
    to.count.dequant_overflow += b.count.dequant_overflow;
    ++to.block.blocks;
    each_flag(plus{}, to.block, b.is);
    to.counted_max = std::max(to.counted_max, b.counted_max);
}

}  // namespace mx::block
