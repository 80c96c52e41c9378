// SPDX-License-Identifier: Apache-2.0
// Segments with blocks that are short pieces of rows, under the common recipe (row_grid.hpp), if at
// most codes are requested per block: the same figures as segment_body.hpp, with one lane per
// block.
//
// Sixteen lanes process a segment, lane k the blocks k, k + 16, k + 32, ... A block is read once.
// If numbers of 32 bits are not enough for a block, it is only marked; quantize_marked() in
// segment_body.hpp processes it later.
#pragma once

#include <climits>
#include <cmath>

#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_values.hpp"
#include "libmx/codec/cuda/segment_body.hpp"

namespace mx::codec::cuda {

inline constexpr int lanes_per_segment = blocks_per_mark;
inline constexpr std::uint32_t segments_at_once = lane_count / lanes_per_segment;

namespace detail {

// Steps through the blocks of a lane.
struct row_walk {
    std::uint64_t first;  // element of the segment
    std::uint32_t cols, block_cols, across;
    std::uint32_t block, blocks;
    std::uint32_t row, col;  // of the block, in blocks

    MX_HD bool done() const { return block >= blocks; }
    MX_HD std::uint32_t size() const { return std::min(block_cols, cols - col * block_cols); }
    MX_HD std::uint64_t at(const device_values& values) const {
        return first + row * values.stride + col * block_cols;
    }
    MX_HD void advance() {
        block += lanes_per_segment;
        col += lanes_per_segment;
        while (col >= across) {
            col -= across;
            ++row;
        }
    }
};

MX_HD inline row_walk walk_of(const device_segment& of, std::uint32_t lane) {
    const std::uint32_t across = (of.cols + of.block_cols - 1) / of.block_cols;
    const std::uint32_t row = lane / across;
    return {of.at, of.cols,          of.block_cols, across,
            lane,  of.rows * across, row,           lane - row * across};
}

// A block as stored, if there is one.
template <typename Values>
MX_HD inline void load_row(const row_walk& at, const device_values& values, Values& to) {
    if (!at.done()) to.load(values, at.at(values), at.size());
}

// Counts and maxima of a lane.
struct row_tally {
    std::uint32_t nonzero, overflow, clamp, top_code, underflow, subnormal;
    std::uint32_t zero, eligible, collapsed, saturated, dead;
    std::uint32_t counted_max;
    // The largest error: float32 bits plus the exponent of the scale in place, less a bias that
    // keeps them within 32 bits. They compare like the numbers.
    int max_error;

    static constexpr int no_error = INT_MIN;
    MX_HD void add_error(float of_y, int exponent) {
        const int key = static_cast<int>(base::bits_of(of_y) - (127u << 23)) + exponent * (1 << 23);
        if (of_y != 0) max_error = larger{}(max_error, key);
    }
    MX_HD double largest_error() const {
        if (max_error == no_error) return 0;
        const auto mantissa = static_cast<std::uint64_t>(max_error & 0x7fffff) << 29;
        const auto field = static_cast<std::uint64_t>((max_error >> 23) + 1023) << 52;
        return base::double_from_bits(field | mantissa);
    }
};

struct merged_rows {
    MX_HD row_tally operator()(row_tally a, const row_tally& b) const {
        a.nonzero += b.nonzero;
        a.overflow += b.overflow;
        a.clamp += b.clamp;
        a.top_code += b.top_code;
        a.underflow += b.underflow;
        a.subnormal += b.subnormal;
        a.zero += b.zero;
        a.eligible += b.eligible;
        a.collapsed += b.collapsed;
        a.saturated += b.saturated;
        a.dead += b.dead;
        a.counted_max = std::max(a.counted_max, b.counted_max);
        a.max_error = std::max(a.max_error, b.max_error);
        return a;
    }
};

// Counts and verdicts of a block with magnitudes |y| between `least`, the smallest non-zero one,
// and `most`. A count is made only if an end of the range reaches its bound.
template <typename Values>
MX_HD inline void count_row(const row_grid& g, const Values& y, float least, float most,
                            bool has_zeros, std::uint32_t size, row_tally& tally) {
    std::uint32_t nonzero = size, top = 0, underflow = 0;
    if (has_zeros) {
        std::uint32_t count[1];
        y.reaching({base::bits_of(g.near)}, count);
        nonzero = count[0];
    }
    if (base::bits_of(most) >= g.top) {
        std::uint32_t count[1];
        y.reaching({g.top}, count);
        top = count[0];
        tally.top_code += top;
    }
    if (base::bits_of(most) >= g.overflow) {
        std::uint32_t count[2];
        y.reaching({g.overflow, g.clamp}, count);
        tally.overflow += count[0];
        tally.clamp += count[1];
    }
    if (base::bits_of(least) < g.normal) {
        std::uint32_t count[2];
        y.reaching({g.kept, g.normal}, count);
        underflow = nonzero - count[0];
        tally.underflow += underflow;
        tally.subnormal += count[0] - count[1];
    }
    tally.nonzero += nonzero;
    tally.zero += most == 0 ? 1u : 0u;
    if (nonzero < 2) return;
    const float low = rounded(g, least);
    tally.eligible += 1;
    tally.collapsed += low == rounded(g, most) && low != 0 ? 1u : 0u;
    tally.saturated += top == nonzero ? 1u : 0u;
    tally.dead += underflow == nonzero ? 1u : 0u;
}

// The codes of a block, sixteen at a time if there are 32.
MX_HD inline void write_codes(const row_codes& from, std::uint32_t size, std::uint8_t* codes) {
    if (size == row_size) {
        MX_UNROLL
        for (int i = 0; i < 8; i += 4) {
            store_sixteen(codes + 4 * i,
                          {{from.word[i], from.word[i + 1], from.word[i + 2], from.word[i + 3]}});
        }
        return;
    }
    MX_UNROLL
    for (int i = 0; i < row_size; ++i) {
        if (i >= static_cast<int>(size)) continue;
        codes[i] = static_cast<std::uint8_t>(from.word[i / 4] >> (i % 4 * 8));
    }
}

// The scale of a block, and its magnitudes |y| = |x| / S, the smallest without zeros.
struct row_scale {
    int code;
    float reciprocal, least, most;
    bool plain;  // whether numbers of 32 bits are enough
};

MX_HD inline row_scale scale_of(const row_grid& g, std::uint32_t largest,
                                std::uint32_t least_nonzero) {
    row_scale s{};
    const std::uint32_t exponent = (largest + g.rule_step) >> 23;
    s.code = largest == 0 ? g.least_scale : static_cast<int>(exponent) - g.rule_base;
    s.reciprocal = base::float_from_bits(static_cast<std::uint32_t>(g.reciprocal - s.code) << 23);
    s.least = base::float_from_bits(least_nonzero) * s.reciprocal;
    s.most = base::float_from_bits(largest) * s.reciprocal;
    // NaN, Inf, subnormals, a scale at an end of its range, numbers too far apart.
    s.plain = largest == 0 || (least_nonzero >= 0x00800000u && largest < base::f32_infinity &&
                               exponent < 255 && s.code >= g.least_scale &&
                               s.code <= g.most_scale && s.least >= g.near && s.most < g.far);
    return s;
}

// A block after reading.
template <typename Values>
struct row_block {
    Values values;  // as stored; later divided by the scale
    magnitude_range range;
    std::uint32_t least;  // the smallest non-zero magnitude, if any
    row_scale scale;
};

template <typename Values>
MX_HD inline void survey_row(const row_grid& g, std::uint32_t size, row_block<Values>& b) {
    b.range = b.values.range();
    if (size < row_size) b.range.least = 0;  // padded with zeros
    b.least = b.range.least != 0 ? b.range.least : b.values.least_nonzero();
    b.scale = scale_of(g, b.range.most, b.least);
}

// Adds a block that was read, and writes it where codes are wanted. `lowest`: the scale of the
// totals.
template <bool coded, typename Values, typename Converter>
MX_HD inline void add_row(const row_grid& g, const Converter& convert, const row_walk& at,
                          row_block<Values>& b, int lowest, std::uint64_t first_block,
                          const block_results& to, typename row_sums<Values>::totals& sums,
                          row_tally& tally) {
    const std::uint32_t largest = b.range.most;
    const row_scale& s = b.scale;
    Values& y = b.values;
    y.scale(s.reciprocal);
    count_row(g, y, s.least, s.most, b.range.least == 0, at.size(), tally);
    // Last: values leave their registers as they are added up.
    row_sums<Values> sum;
    row_codes codes;
    const float error =
        add_rounded<coded>(g, convert, y, base::bits_of(s.most) >= g.clamp, sum, codes);
    sum.add_to(sums, largest == 0 ? 0 : s.code - lowest);
    tally.add_error(error, s.code - format::e8m0_bias + g.unit);
    tally.counted_max = larger{}(tally.counted_max, largest);
    if constexpr (coded) {
        const std::uint64_t index = first_block + at.block;
        write_codes(codes, at.size(), to.codes + index * to.stride);
        // A block of zeros has the least scale under every rule.
        to.scale_code[index] = static_cast<std::uint8_t>(largest == 0 ? 0 : s.code);
        to.offset[index] = 0;
        to.amax[index] = to.x_max[index] = largest;
        to.x_min[index] = b.least;
    }
}

// The sums of the lanes to those of the recipe.
template <typename Values>
MX_HD inline void give_rows(const row_grid& g, int lowest,
                            const per_lane<typename row_sums<Values>::totals>& sums,
                            block::exact_totals& totals) {
    const int scale = lowest - format::e8m0_bias + g.unit;
    const int x = scale + row_sums<Values>::x_place;
    const int q = scale + q_place;
    per_lane<lane_totals<false>> all;
    each([&](int lane) {
        all[lane] = no_totals<false>(totals);
        all[lane].aimed = 0;
        all[lane].x.start(totals.x, widened(sums[lane].x), x);
        all[lane].d.start(totals.d, widened(sums[lane].d), q);
        all[lane].x2.start(totals.x2, sums[lane].x2, 2 * x);
        all[lane].d2.start(totals.d2, sums[lane].d2, 2 * q);
        all[lane].xd.start(totals.xd, sums[lane].xd, x + q);
    });
    give_totals(all);
}

}  // namespace detail

/// What the warps of a recipe share.
struct row_recipe {
    row_grid grid;
    block_results blocks;
};
MX_HD inline row_recipe row_recipe_of(const device_recipe& r) {
    return {row_grid_of(r.params), r.blocks};
}

/// Quantizes segment `first_segment` of a launch and, if there is one, the next under its recipe
/// `r`, which takes_rows() accepts; the same bytes as scalar::quantize, except for the blocks that
/// it marks, which are left out. With `coded`, also writes codes and the facts of scales. Called by
/// all lanes of a warp. Values is the kind of block for the stored type: bf16_block for bf16,
/// float_block for all.
template <bool coded, typename Values, typename Converter>
MX_HD inline void quantize_rows(const row_recipe& shared, const launch& l, std::uint32_t r,
                                std::uint32_t first_segment) {
    using namespace detail;
    using sums_of = row_sums<Values>;
    constexpr int none = -1;
    const row_grid& g = shared.grid;
    const Converter convert(l.recipes[r].params);
    const std::uint32_t count = l.segment_count - first_segment;  // two, or one
    const std::uint64_t first = std::uint64_t{r} * l.segment_count + first_segment;
    per_lane<row_walk> at;
    per_lane<std::uint64_t> first_block;
    per_lane<row_tally> tally;
    per_lane<Values> ahead;
    each([&](int lane) {
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        tally[lane] = {};
        tally[lane].max_error = row_tally::no_error;
        at[lane] = {};  // nothing to do
        first_block[lane] = 0;
        if (which >= count) return;
        const device_segment& s = l.segments[first_segment + which];
        at[lane] = walk_of(s, static_cast<std::uint32_t>(lane % lanes_per_segment));
        first_block[lane] = s.first_block;
        if constexpr (Values::ahead) load_row(at[lane], l.values, ahead[lane]);
    });
    std::uint32_t round = 0;
    per_lane<bool> busy;
    do {
        per_lane<typename sums_of::totals> sums;
        each([&](int lane) { sums[lane] = {}; });
        int lowest = none;
        for (int i = 0; i < sums_of::rounds; ++i) {
            per_lane<row_block<Values>> b;
            per_lane<int> scale;
            each([&](int lane) {
                scale[lane] = none;
                busy[lane] = !at[lane].done();
                if (!busy[lane]) return;
                if constexpr (Values::ahead) {
                    b[lane].values = ahead[lane];
                } else {
                    load_row(at[lane], l.values, b[lane].values);
                }
                survey_row(g, at[lane].size(), b[lane]);
                if (b[lane].scale.plain && b[lane].range.most != 0)
                    scale[lane] = b[lane].scale.code;
            });
            if (!any(busy)) break;
            const int most = largest(scale);
            if (most != none) {
                if (lowest == none) lowest = most - (sums_of::span - 2);
                if (most > lowest + sums_of::span || most < lowest + sums_of::span / 2) break;
            }
            per_lane<bool> rare;
            each([&](int lane) {
                rare[lane] = false;
                if (!busy[lane]) return;
                const row_scale& s = b[lane].scale;
                rare[lane] = !s.plain || (b[lane].range.most != 0 && s.code < lowest);
                const row_walk here = at[lane];
                at[lane].advance();
                if constexpr (Values::ahead) load_row(at[lane], l.values, ahead[lane]);
                if (rare[lane]) return;
                add_row<coded, Values, Converter>(g, convert, here, b[lane], lowest,
                                                  first_block[lane], shared.blocks, sums[lane],
                                                  tally[lane]);
            });
            const std::uint32_t bits = ballot(rare);
            each([&](int lane) {
                const int which = lane / lanes_per_segment;
                if (lane % lanes_per_segment != 0 || !busy[lane]) return;
                const std::uint64_t segment = first + static_cast<std::uint64_t>(which);
                l.marks[segment * l.marks_per_segment + round] =
                    static_cast<std::uint16_t>(bits >> (which * lanes_per_segment));
            });
            ++round;
        }
        if (lowest != none) give_rows<Values>(g, lowest, sums, *l.recipes[r].totals);
    } while (any(busy));
    for (int mask = lanes_per_segment / 2; mask > 0; mask /= 2)
        exchange(tally, mask, merged_rows{});
    each([&](int lane) {
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        if (lane % lanes_per_segment != 0 || which >= count) return;
        const row_tally& from = tally[lane];
        segment_tally& all = l.tallies[first + which];
        all = {};
        all.max_error = from.largest_error();
        // Lanes do not count what follows from the shape.
        all.elements = at[lane].blocks / at[lane].across * at[lane].cols;
        all.blocks = at[lane].blocks;
        all.nonzero = from.nonzero;
        all.overflow = from.overflow;
        all.clamp = from.clamp;
        all.top_code = from.top_code;
        all.underflow = from.underflow;
        all.subnormal = from.subnormal;
        all.zero = from.zero;
        all.eligible = from.eligible;
        all.collapsed = from.collapsed;
        all.saturated = from.saturated;
        all.dead = from.dead;
        all.counted_max = from.counted_max;
    });
}

}  // namespace mx::codec::cuda
