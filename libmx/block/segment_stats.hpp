// SPDX-License-Identifier: Apache-2.0
// Totals over the blocks of one segment (view.hpp), as delivered by backends.
#pragma once

#include <algorithm>
#include <cstdint>

#include "libmx/base/macros.hpp"
#include "libmx/block/block_stats.hpp"
#include "libmx/block/exact_totals.hpp"

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
    exact_totals sum;
    double max_error;           ///< max |d - x|, rounded once
    std::uint32_t counted_max;  ///< float32 bits of max |x| over what sums are over
};

/// Adds the counts and maxima of one block to those of its segment, but not its sums.
MX_HD inline void add_counts(segment_stats& to, const block_stats& b) {
    each_count(plus{}, to.count, b.count);
    to.count.dequant_overflow += b.count.dequant_overflow;
    ++to.block.blocks;
    each_flag(plus{}, to.block, b.is);
    to.counted_max = std::max(to.counted_max, b.counted_max);
    to.max_error = to.max_error < b.sum.max_error ? b.sum.max_error : to.max_error;
}

}  // namespace mx::block
