// SPDX-License-Identifier: Apache-2.0
// Recipes that are not plain, in four steps: values are laid out in blocks, exponents raised by a
// row of blocks are found, each thread quantizes a block like the reference, and a warp adds up the
// counts of a segment.
#pragma once

#include <algorithm>
#include <span>

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/lane_group.hpp"
#include "libmx/codec/cuda/lane_totals.hpp"
#include "libmx/codec/cuda/segment_body.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/general_block.hpp"
#include "libmx/codec/segment.hpp"

namespace mx::codec::cuda {

namespace detail {

MX_HD inline segment_place place_of(const device_segment& s) {
    return {s.tensor_id, s.first, s.row_stride, s.rows, s.cols, s.block_rows, s.block_cols};
}

// The segment of a block of the batch.
MX_HD inline const device_segment& segment_of(const launch& l, std::uint64_t block) {
    std::uint32_t from = 0;
    for (std::uint32_t beyond = l.segment_count; beyond - from > 1;) {
        const std::uint32_t middle = from + (beyond - from) / 2;
        (l.segments[middle].first_block <= block ? from : beyond) = middle;
    }
    return l.segments[from];
}

}  // namespace detail

/// Lays out the values of a segment as pack_blocks does: every `step`th of them from `begin` on.
MX_HD inline void pack_segment(const launch& l, const device_segment& s, std::uint32_t begin,
                               std::uint32_t step) {
    const segment_place place = detail::place_of(s);
    const std::uint64_t all = place.blocks() * l.stride;
    for (std::uint64_t i = begin; i < all; i += step) {
        const std::uint64_t block = i / l.stride;
        const auto position = static_cast<std::uint32_t>(i - block * l.stride);
        const block_extent e = extent_of(place, block);
        float x = 0;
        if (position < e.size()) {
            const auto cols = static_cast<std::uint32_t>(e.cols);
            const std::uint64_t row = e.row + position / cols;
            const std::uint64_t col = e.col + position % cols;
            x = detail::load_value(l.values, s.at + row * l.values.stride + col);
        }
        l.x[(s.first_block + block) * l.stride + position] = x;
    }
}

/// Writes the result of bumps_of_row for the grid rows of a packed segment to where the codes of
/// each row's first block would be: every `step`th position from `begin` on.
MX_HD inline void raise_exponents(const launch& l, const device_segment& s, std::uint32_t begin,
                                  std::uint32_t step) {
    const segment_place place = detail::place_of(s);
    const std::uint64_t across = place.grid_cols();
    const std::uint64_t size = place.block_size();
    for (std::uint64_t first = 0; first < place.blocks(); first += across) {
        for (std::uint64_t i = begin; i < size; i += step) {
            std::uint32_t largest = 0;
            for (std::uint64_t b = first; b < first + across; ++b) {
                if (i >= extent_of(place, b).size()) continue;
                const float x = l.x[(s.first_block + b) * l.stride + i];
                largest = std::max(largest, base::bits_of(x) & base::f32_magnitude_mask);
            }
            l.raised[(s.first_block + first) * l.stride + i] = raises_exponent(largest) ? 1 : 0;
        }
    }
}

/// Quantizes the packed blocks of the batch from `first` on, one per lane. Called by all lanes of a
/// warp.
MX_HD inline void quantize_general(const launch& l, const general_recipe& r, std::uint64_t first) {
    per_lane<lane_totals<true>> sums;
    per_lane<int> exponent;
    const auto block_of = [&](int lane) { return first + static_cast<std::uint64_t>(lane); };
    each([&](int lane) {
        sums[lane] = no_totals<true>(*r.totals);
        // Packed blocks are padded with zeros.
        std::uint32_t largest = 0;
        for (std::uint64_t i = 0; block_of(lane) < l.block_count && i < l.stride; ++i) {
            const float x = l.x[block_of(lane) * l.stride + i];
            const std::uint32_t magnitude = base::bits_of(x) & base::f32_magnitude_mask;
            if (magnitude < base::f32_infinity) largest = std::max(largest, magnitude);
        }
        exponent[lane] = exponent_of(largest);
    });
    aim(sums, exponent);
    each([&](int lane) {
        const std::uint64_t block = block_of(lane);
        if (block >= l.block_count) return;
        const device_segment& s = detail::segment_of(l, block);
        const segment_place place = detail::place_of(s);
        const std::uint64_t index = block - s.first_block;
        const block_extent e = extent_of(place, index);
        block_place at = place_of(place, e);
        const std::uint64_t lies = block * l.stride;
        if (r.params.bumps) at.bump = l.raised + (block - index % place.grid_cols()) * l.stride;
        std::span<std::uint8_t> codes;
        std::span<float> values;
        if (r.blocks.codes != nullptr) codes = {r.blocks.codes + lies, e.size()};
        if (r.blocks.values != nullptr) values = {r.blocks.values + lies, e.size()};
        const block::block_stats stats = codec::quantize_general(
            r.params, {l.x + lies, e.size()}, at, codes, values, &sums[lane], r.parts);
        segment_tally tally{};
        add_block(tally, stats);
        r.kept[block] = tally;
        r.blocks.put(block, stats);
    });
    give_totals(sums);
}

/// Adds up the counts of the blocks of segment `s`. Called by all lanes of a warp; one of them
/// writes.
MX_HD inline void add_segment(const launch& l, const general_recipe& r, std::uint32_t s) {
    const device_segment& segment = l.segments[s];
    const std::uint64_t blocks = detail::place_of(segment).blocks();
    per_lane<segment_tally> tally;
    each([&](int lane) {
        tally[lane] = {};
        for (auto b = static_cast<std::uint64_t>(lane); b < blocks; b += lane_count) {
            tally[lane] = merged_tally{}(tally[lane], r.kept[segment.first_block + b]);
        }
    });
    for (int mask = lane_count / 2; mask > 0; mask /= 2) exchange(tally, mask, merged_tally{});
    each([&](int lane) {
        if (lane == 0) r.tallies[s] = tally[lane];
    });
}

}  // namespace mx::codec::cuda
