// SPDX-License-Identifier: Apache-2.0
// A segment by 32 lanes: the steps of plain_block.hpp. Eight lanes process a block and four blocks
// are processed at a time; each lane adds up its own elements (lane_totals.hpp).
#pragma once

#include <algorithm>
#include <cmath>

#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/lane_group.hpp"
#include "libmx/codec/cuda/lane_totals.hpp"
#include "libmx/codec/plain_block.hpp"
#include "libmx/codec/stored_value.hpp"

namespace mx::codec::cuda {
namespace detail {

inline constexpr int lanes_per_block = 8;
inline constexpr std::uint32_t blocks_at_once = 4;
inline constexpr int values_per_lane = 4;
// Positions of a block that its lanes process at a time.
inline constexpr int chunk_size = lanes_per_block * values_per_lane;

struct lane_values {
    float v[values_per_lane];
};

MX_HD inline float load_value(const device_values& values, std::uint64_t at) {
    return stored_value(values.type, values.data, at);
}

// Where a block is in its segment.
struct lane_window {
    std::uint32_t index;  // among its blocks
    std::uint32_t row, col, rows, cols;
    std::uint32_t size;  // 0: there is no such block
};

// The state of a block in one of its lanes.
struct lane_block : lane_window {
    bool counts;  // its elements are quantized; else it is poisoned or does not exist
    int exponent;
    float offset;
    block_survey seen;
    element_tally tally;
    std::uint32_t ruled;
    block::block_stats stats;
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

// Row and column in the segment of a position of the block.
struct cell {
    std::uint32_t row, col;
};
MX_HD inline cell cell_of(const lane_window& b, std::uint32_t position) {
    const std::uint32_t row = b.rows == 1 ? 0 : position / b.cols;
    return {b.row + row, b.col + position - row * b.cols};
}

MX_HD inline std::uint32_t position_of(std::uint32_t chunk, int lane, int k) {
    return chunk * static_cast<std::uint32_t>(chunk_size) +
           static_cast<std::uint32_t>(lane % lanes_per_block + k * lanes_per_block);
}

// A member of a lane's state over the lanes of its block.
template <typename T, typename Member, typename Combine>
MX_HD inline void over_block(per_lane<T>& v, Member T::*member, Combine combine) {
    for (int mask = lanes_per_block / 2; mask > 0; mask /= 2) exchange(v, member, mask, combine);
}

template <int lanes = lanes_per_block, typename T, typename Combine>
MX_HD inline void over_block(per_lane<T>& v, Combine combine) {
    for (int mask = lanes / 2; mask > 0; mask /= 2) exchange(v, mask, combine);
}

/// Merges what other lanes know of the same block.
struct merged {
    template <typename T>
    MX_HD T operator()(T a, const T& b) const {
        a.merge(b);
        return a;
    }
};

// Loads a chunk of every block; positions beyond a block's end are unchanged.
MX_HD inline void load_chunk(const device_segment& s, const device_values& values,
                             std::uint32_t chunk, const per_lane<lane_block>& b,
                             per_lane<lane_values>& x) {
    each([&](int lane) {
        for (int k = 0; k < values_per_lane; ++k) {
            const std::uint32_t position = position_of(chunk, lane, k);
            if (position >= b[lane].size) continue;
            const cell c = cell_of(b[lane], position);
            x[lane].v[k] = load_value(values, s.at + c.row * values.stride + c.col);
        }
    });
}

// Calls what(position, k) for the positions of a chunk that are within the lane's block.
template <typename What>
MX_HD inline void for_positions(const lane_block& b, std::uint32_t chunk, int lane, What&& what) {
    for (int k = 0; k < values_per_lane; ++k) {
        const std::uint32_t position = position_of(chunk, lane, k);
        if (position < b.size) what(position, k);
    }
}

// Merges the surveys of a block's lanes.
MX_HD inline void merge_surveys(bool with_range, per_lane<lane_block>& b) {
    per_lane<block_survey> seen;
    per_lane<bool> special;
    each([&](int lane) { seen[lane] = b[lane].seen; });
    over_block(seen, &block_survey::amax, larger{});
    each([&](int lane) { special[lane] = seen[lane].amax >= base::f32_infinity; });
    over_block(seen, &block_survey::least,
               [](std::uint32_t a, std::uint32_t c) { return a < c ? a : c; });
    if (any(special)) {
        over_block(seen, &block_survey::nan, plus{});
        over_block(seen, &block_survey::inf, plus{});
    }
    if (with_range) {
        over_block(seen, &block_survey::low, [](float a, float c) { return c < a ? c : a; });
        over_block(seen, &block_survey::high, [](float a, float c) { return c > a ? c : a; });
    }
    each([&](int lane) { b[lane].seen = seen[lane]; });
}

// Merges the tallies of a block's lanes.
MX_HD inline void merge_tallies(per_lane<lane_block>& b) {
    per_lane<element_tally> tally;
    each([&](int lane) { tally[lane] = b[lane].tally; });
    over_block(tally, merged{});
    each([&](int lane) { b[lane].tally = tally[lane]; });
}

// Finds the scales: the first pass over the blocks.
MX_HD inline void survey_blocks(const plain_params& p, const device_segment& s,
                                const device_values& values, std::uint32_t chunks,
                                per_lane<lane_block>& b, per_lane<lane_values>& x) {
    for (std::uint32_t c = 0; c < chunks; ++c) {
        load_chunk(s, values, c, b, x);
        each([&](int lane) {
            lane_block& own = b[lane];
            for_positions(own, c, lane, [&](std::uint32_t, int k) { own.seen.add(x[lane].v[k]); });
        });
    }
    merge_surveys(p.has_offset, b);
    each([&](int lane) {
        lane_block& own = b[lane];
        own.counts = own.size != 0 && begin_block(p, own.seen, own.size, own.stats);
        own.offset = base::float_from_half(own.stats.offset);
        own.ruled = own.seen.amax;
        if (!p.has_offset || !own.counts) return;
        own.ruled = p.range == range_kind::half ? base::bits_of(half_range(own.seen)) : 0u;
    });
    if (p.has_offset && p.range == range_kind::max) {
        for (std::uint32_t c = 0; c < chunks; ++c) {
            if (chunks > 1) load_chunk(s, values, c, b, x);
            each([&](int lane) {
                lane_block& own = b[lane];
                if (!own.counts) return;
                for_positions(own, c, lane, [&](std::uint32_t, int k) {
                    own.ruled = larger{}(own.ruled, distance_bits(x[lane].v[k], own.offset));
                });
            });
        }
        over_block(b, &lane_block::ruled, larger{});
    }
    each([&](int lane) {
        lane_block& own = b[lane];
        own.counts = own.counts && choose_scale(p, own.seen, own.ruled, own.stats);
        own.exponent = scale_exponent(own.stats);
    });
}

// Elements to codes and sums.
template <bool parts>
MX_HD inline void encode_blocks(const plain_params& p, const device_segment& s,
                                const device_values& values, std::uint32_t chunks,
                                per_lane<lane_block>& b, per_lane<lane_values>& x,
                                const block_results& to, per_lane<lane_totals<parts>>& totals) {
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, s.tensor_id};
    for (std::uint32_t c = 0; c < chunks; ++c) {
        if (chunks > 1) load_chunk(s, values, c, b, x);
        each([&](int lane) {
            lane_block& own = b[lane];
            const element_encoder encoder(p, own.exponent, own.offset);
            std::uint8_t* const codes =
                to.codes == nullptr ? nullptr : to.codes + (s.first_block + own.index) * to.stride;
            for_positions(own, c, lane, [&](std::uint32_t position, int k) {
                if (!own.counts) {
                    if (codes != nullptr) codes[position] = p.poisoned_code;
                    return;
                }
                std::uint32_t draw = 0;
                if (random) {
                    const cell at = cell_of(own, position);
                    draw = base::random_u32(key, s.first + at.row * s.row_stride + at.col);
                }
                const float v = x[lane].v[k];
                const auto one = encoder.encode(v, draw, own.tally);
                if (codes != nullptr) codes[position] = one.code;
                const block::exact_value d{own.offset, one.product};
                const double error = std::fabs(error_of(v, d.offset, d.product));
                own.stats.sum.max_error = larger{}(own.stats.sum.max_error, error);
                totals[lane].add(v, d, one.part, parts);
            });
        });
    }
    merge_tallies(b);
    each([&](int lane) {
        if (b[lane].counts) b[lane].tally.finish(p.element, b[lane].stats);
    });
}

// Adds a finished block to the tally of one of its lanes and writes the requested facts.
MX_HD inline void add_block(const device_segment& s, int lane, const lane_block& b,
                            segment_tally& tally, const block_results& to) {
    if (b.size == 0) return;
    if (lane % lanes_per_block != 0) {
        tally.max_error = larger{}(tally.max_error, b.stats.sum.max_error);
        return;
    }
    cuda::add_block(tally, b.stats);
    to.put(s.first_block + b.index, b.stats);
}

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

/// Quantizes the segment with the same bytes as scalar::quantize, with the parts of the squared
/// error if `parts` is set; adds the sums to `totals`. Called by all lanes of a warp; one of them
/// writes `out`. With `marks`, only the marked blocks, and adds them to `out`, which counts all
/// elements and blocks already.
template <bool parts>
MX_HD inline void quantize_segment(const plain_params& p, const device_segment& segment,
                                   const device_values& values, const block_results& to,
                                   block::exact_totals& totals, segment_tally& out,
                                   const std::uint16_t* marks) {
    using namespace detail;
    const device_segment s = segment;
    const std::uint32_t largest = std::min(s.rows, s.block_rows) * std::min(s.cols, s.block_cols);
    const std::uint32_t chunks = (largest + chunk_size - 1) / chunk_size;
    const auto round = [&](std::uint32_t first, auto& tally, auto& sums) {
        std::uint32_t wanted = ~0u;
        if (marks != nullptr) wanted = marks[first / blocks_per_mark] >> first % blocks_per_mark;
        if ((wanted & ((1u << blocks_at_once) - 1u)) == 0) return;
        per_lane<lane_block> b;
        per_lane<lane_values> x;
        each([&](int lane) {
            const auto group = static_cast<std::uint32_t>(lane / lanes_per_block);
            b[lane] = {};
            static_cast<lane_window&>(b[lane]) = window_of(s, first + group);
            if ((wanted >> group & 1u) == 0) b[lane].size = 0;
        });
        survey_blocks(p, s, values, chunks, b, x);
        per_lane<int> exponent;
        each([&](int lane) {
            const lane_block& own = b[lane];
            exponent[lane] = own.counts ? exponent_of(own.seen.amax) : no_exponent;
        });
        aim(sums, exponent);
        encode_blocks<parts>(p, s, values, chunks, b, x, to, sums);
        each([&](int lane) { add_block(s, lane, b[lane], tally[lane], to); });
    };
    for_rounds<parts>(s, blocks_at_once, totals, out, marks != nullptr, round);
}

}  // namespace mx::codec::cuda
