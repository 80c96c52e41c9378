// SPDX-License-Identifier: Apache-2.0
// The blocks of a segment, and what 32 lanes that process them exchange.
#pragma once

#include <algorithm>

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/lane_group.hpp"
#include "libmx/codec/cuda/lane_totals.hpp"
#include "libmx/codec/stored_value.hpp"

namespace mx::codec::cuda {
namespace detail {

MX_HD inline float load_value(const device_values& values, std::uint64_t at) {
    return stored_value(values.type, values.data, at);
}

// Where a block is in its segment.
struct lane_window {
    std::uint32_t index;  // among its blocks
    std::uint32_t row, col, rows, cols;
    std::uint32_t size;  // 0: there is no such block
};

MX_HD inline lane_window window_of(const device_segment& s, std::uint32_t index) {
    lane_window b{};
    const std::uint32_t across = (s.cols + s.block_cols - 1) / s.block_cols;
    const std::uint32_t down = (s.rows + s.block_rows - 1) / s.block_rows;
    b.index = index;
    if (index >= across * down) return b;
    // Most segments are part of one grid row.
    const std::uint32_t grid_row = down == 1 ? 0 : index / across;
    b.row = grid_row * s.block_rows;
    b.col = (index - grid_row * across) * s.block_cols;
    b.rows = std::min(s.block_rows, s.rows - b.row);
    b.cols = std::min(s.block_cols, s.cols - b.col);
    b.size = b.rows * b.cols;
    return b;
}

// Combines what the lanes of a block have, in each of them.
template <int lanes, typename T, typename Combine>
MX_HD inline void over_block(per_lane<T>& v, Combine combine) {
    for (int mask = lanes / 2; mask > 0; mask /= 2) exchange(v, mask, combine);
}

// The same for a member.
template <int lanes, typename T, typename Member, typename Combine>
MX_HD inline void over_block(per_lane<T>& v, Member T::*member, Combine combine) {
    for (int mask = lanes / 2; mask > 0; mask /= 2) exchange(v, member, mask, combine);
}

/// Merges what other lanes know of the same block.
struct merged {
    template <typename T>
    MX_HD T operator()(T a, const T& b) const {
        a.merge(b);
        return a;
    }
};

}  // namespace detail

MX_HD inline std::uint32_t blocks_of(const device_segment& s) {
    return (s.rows + s.block_rows - 1) / s.block_rows *
           ((s.cols + s.block_cols - 1) / s.block_cols);
}

/// Calls round(first, tally, sums) for the blocks of a segment, `at_once` of them from `first` on,
/// and adds what it adds up to the sums of the recipe. Called by all lanes of a warp; one of them
/// writes the tally to `out`, or with `more` adds it to what is there except for the extents.
template <bool parts, typename Round>
MX_HD inline void for_rounds(const device_segment& s, std::uint32_t at_once,
                             block::exact_totals& totals, segment_tally& out, bool more,
                             Round&& round) {
    const std::uint32_t blocks = blocks_of(s);
    per_lane<segment_tally> tally;
    per_lane<lane_totals<parts>> sums;
    each([&](int lane) {
        tally[lane] = {};
        sums[lane] = no_totals<parts>(totals);
    });
    for (std::uint32_t first = 0; first < blocks; first += at_once) round(first, tally, sums);
    give_totals(sums);
    for (int mask = lane_count / 2; mask > 0; mask /= 2) exchange(tally, mask, merged_tally{});
    each([&](int lane) {
        if (lane != 0) return;
        if (more) {
            tally[lane].elements = tally[lane].blocks = 0;
            tally[lane] = merged_tally{}(tally[lane], out);
        }
        out = tally[lane];
    });
}

}  // namespace mx::codec::cuda
