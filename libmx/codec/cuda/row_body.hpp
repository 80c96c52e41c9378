// SPDX-License-Identifier: Apache-2.0
// Segments with blocks that are short pieces of rows, under the common recipe (row_grid.hpp), if at
// most codes are requested per block: the same figures as segment_body.hpp, with one lane per
// block.
//
// Sixteen lanes process a segment, lane k the blocks k, k + 16, k + 32, ... A block is read once.
// If 32-bit numbers are not enough, the block goes through the steps of the reference.
// once. Where 32-bit numbers do not do, the block takes the steps of the reference.
#pragma once

#include <cmath>

#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_values.hpp"
#include "libmx/codec/cuda/segment_body.hpp"

#if defined(__CUDACC__)
#define MX_OUT_OF_LINE __noinline__
#else
#define MX_OUT_OF_LINE [[gnu::noinline]] inline
#endif

namespace mx::codec::cuda {

inline constexpr int lanes_per_segment = 16;
inline constexpr std::uint32_t segments_at_once = lane_count / lanes_per_segment;

namespace detail {

// Steps through the blocks of a lane.
struct row_walk {
    std::uint64_t first, first_block;  // of the segment: its first element and its first block
    std::uint32_t rows, cols, block_cols, across;
    std::uint32_t row, col;  // of the block, in blocks

    MX_HD bool done() const { return row >= rows; }
    MX_HD std::uint32_t size() const { return std::min(block_cols, cols - col * block_cols); }
    MX_HD std::uint64_t at(const device_values& values) const {
        return first + row * values.stride + col * block_cols;
    }
    MX_HD std::uint64_t index() const { return first_block + std::uint64_t{row} * across + col; }
    MX_HD void advance() {
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
    return {of.at,         of.first_block, of.rows, of.cols,
            of.block_cols, across,         row,     lane - row * across};
}

// A block after reading.
template <typename Values>
struct row_block {
    Values values;       // as stored; later divided by the scale
    std::uint32_t size;  // 0: there is none
    magnitude_range range;
    std::uint32_t least;  // the smallest non-zero magnitude, if any
};

template <typename Values>
MX_HD inline void load_row(const row_walk& at, const device_values& values, row_block<Values>& b) {
    b.size = at.done() ? 0 : at.size();
    if (b.size == 0) return;
    b.values.load(values, at.at(values), b.size);
    b.range = b.values.range();
    if (b.size < row_size) b.range.least = 0;  // padded with zeros
    b.least = b.range.least != 0 ? b.range.least : b.values.least_nonzero();
}

// The whole block by the steps of the reference, with its codes if requested.
template <typename Dummy = void>
MX_HD MX_OUT_OF_LINE void block_by_steps(const plain_params& p, device_values values,
                                         std::uint64_t at, std::uint32_t size, std::uint8_t* codes,
                                         lane_totals<false>& sums, block::block_stats& out) {
    block_survey seen;
    for (std::uint32_t i = 0; i < size; ++i) seen.add(load_value(values, at + i));
    out = {};
    if (!begin_block(p, seen, size, out) || !choose_scale(p, seen, seen.amax, out)) {
        for (std::uint32_t i = 0; codes != nullptr && i < size; ++i) codes[i] = p.poisoned_code;
        return;
    }
    const int exponent = scale_exponent(out);
    const double scale = base::exact_pow2(exponent);
    const element_encoder encoder(p, exponent);
    element_tally tally;
    for (std::uint32_t i = 0; i < size; ++i) {
        const float x = load_value(values, at + i);
        const auto one = encoder.encode(x, 0, tally);
        if (codes != nullptr) codes[i] = one.code;
        const double d = scale * static_cast<double>(p.value[one.code]);
        const double error = std::fabs(d - static_cast<double>(x));
        out.sum.max_error = larger{}(out.sum.max_error, error);
        sums.add(x, {0, d}, one.part, false);
    }
    tally.finish(p.element, out);
}

// Counts and verdicts of a block with magnitudes |y| between `least`, the smallest non-zero one,
// and `most`. A count is made only if an end of the range reaches its bound.
template <typename Values>
MX_HD inline void count_row(const row_grid& g, const Values& y, float least, float most,
                            bool has_zeros, std::uint32_t size, segment_tally& tally) {
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

// The codes of a scaled block, sixteen at a time if there are 32.
template <typename Values, typename Converter>
MX_HD inline void write_codes(const row_grid& g, const Values& y,
                              const rounded_block<Values, Converter>& on_grid, std::uint32_t size,
                              std::uint8_t* codes) {
    constexpr int half = row_size / 2;
    sixteen_bytes out[2] = {};
    MX_UNROLL
    for (int i = 0; i < half; ++i) {
        const value_pair q = on_grid(i);
        out[0].word[i / 4] |= code_of(g, q.first, y[i]) << (i % 4 * 8);
        out[1].word[i / 4] |= code_of(g, q.second, y[i + half]) << (i % 4 * 8);
    }
    if (size == row_size) {
        store_sixteen(codes, out[0]);
        store_sixteen(codes + half, out[1]);
        return;
    }
    MX_UNROLL
    for (int i = 0; i < row_size; ++i) {
        if (i >= static_cast<int>(size)) continue;
        codes[i] = static_cast<std::uint8_t>(out[i / half].word[i % half / 4] >> (i % 4 * 8));
    }
}

// The scale of a block, and its magnitudes |y| = |x| / S, the smallest without zeros.
struct row_scale {
    int code;
    float reciprocal, least, most;
    bool plain;  // whether 32-bit numbers do
};

MX_HD inline row_scale scale_of(const row_grid& g, std::uint32_t largest,
                                std::uint32_t least_nonzero) {
    row_scale s{};
    const std::uint32_t exponent = (largest + g.rule_step) >> 23;
    s.code = largest == 0 ? format::e8m0_bias : static_cast<int>(exponent) - g.rule_base;
    s.reciprocal = base::float_from_bits(static_cast<std::uint32_t>(254 - s.code) << 23);
    s.least = base::float_from_bits(least_nonzero) * s.reciprocal;
    s.most = base::float_from_bits(largest) * s.reciprocal;
    // NaN, Inf, subnormals, a scale at an end of its range, numbers too far apart.
    s.plain = largest == 0 ||
              (least_nonzero >= 0x00800000u && largest < base::f32_infinity && exponent < 255 &&
               s.code >= 1 && s.code <= 253 && s.least >= g.near && s.most < g.far);
    return s;
}

// Adds a block that was read, and writes it where codes are wanted.
template <bool coded, typename Values, typename Converter>
MX_HD inline void add_row(const plain_params& p, const row_grid& g, const Converter& convert,
                          const row_walk& at, const device_values& values, row_block<Values>& b,
                          const block_results& to, lane_totals<false>& sums, segment_tally& tally) {
    const std::uint64_t index = at.index();
    std::uint8_t* const codes = coded ? to.codes + index * to.stride : nullptr;
    const std::uint32_t largest = b.range.most;
    const row_scale s = scale_of(g, largest, b.least);
    if (!s.plain) {
        // Sums of its own, which lie in memory, in the same units.
        lane_totals<false> own = sums;
        own.clear();
        block::block_stats stats;
        block_by_steps(p, values, at.at(values), b.size, codes, own, stats);
        sums.add(own);
        cuda::add_block(tally, stats);
        if constexpr (coded) to.put(index, stats);
        return;
    }
    Values& y = b.values;
    y.scale(s.reciprocal);
    const rounded_block<Values, Converter> q(g, convert, y, base::bits_of(s.most));
    row_sums<Values> sum(g);
    float most_error = 0;
    MX_UNROLL
    for (int i = 0; i < row_size / 2; ++i) {
        const value_pair pair = q(i);
        sum.add(y[i], pair.first);
        sum.add(y[i + row_size / 2], pair.second);
        most_error = larger_of(most_error, larger_of(std::fabs(pair.first - y[i]),
                                                     std::fabs(pair.second - y[i + row_size / 2])));
    }
    const int scale = s.code - format::e8m0_bias;
    sum.add_to(sums, g, scale);
    tally.max_error =
        larger{}(tally.max_error, static_cast<double>(most_error) * base::exact_pow2(scale));
    tally.counted_max = larger{}(tally.counted_max, largest);
    count_row(g, y, s.least, s.most, b.range.least == 0, b.size, tally);
    if constexpr (coded) {
        write_codes(g, y, q, b.size, codes);
        // A block of zeros has the least scale under every rule.
        to.scale_code[index] = static_cast<std::uint8_t>(largest == 0 ? 0 : s.code);
        to.offset[index] = 0;
        to.amax[index] = to.x_max[index] = largest;
        to.x_min[index] = b.least;
    }
}

}  // namespace detail

/// Quantizes one segment, or two that are adjacent in the list, under a recipe that takes_rows()
/// accepts; the same bytes as scalar::quantize. Adds the sums to `totals`. With `coded`, also
/// writes codes and the facts of scales to `to`, which must have room for them. Called by all lanes
/// of a warp. Values is the kind of block for the stored type: bf16_block for bf16, float_block for
/// all.
template <bool coded, typename Values, typename Converter>
MX_HD inline void quantize_rows(const plain_params& p, const device_segment* segments,
                                std::uint32_t count, const device_values& values,
                                const block_results& to, block::exact_totals& totals,
                                segment_tally* out) {
    using namespace detail;
    const row_grid g = row_grid_of(p);
    const Converter convert(p);
    per_lane<row_walk> at;
    per_lane<segment_tally> tally;
    per_lane<lane_totals<false>> sums;
    per_lane<bool> busy;
    each([&](int lane) {
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        tally[lane] = {};
        sums[lane] = no_totals<false>(totals);
        at[lane] = {};  // nothing to do
        if (which < count) {
            at[lane] =
                walk_of(segments[which], static_cast<std::uint32_t>(lane % lanes_per_segment));
        }
        busy[lane] = !at[lane].done();
    });
    while (any(busy)) {
        per_lane<row_block<Values>> b;
        per_lane<int> exponent;
        each([&](int lane) {
            load_row(at[lane], values, b[lane]);
            const bool finite = b[lane].size != 0 && b[lane].range.most < base::f32_infinity;
            exponent[lane] = finite ? exponent_of(b[lane].range.most) : no_exponent;
        });
        aim(sums, exponent);
        each([&](int lane) {
            if (b[lane].size == 0) return;
            add_row<coded, Values>(p, g, convert, at[lane], values, b[lane], to, sums[lane],
                                   tally[lane]);
            at[lane].advance();
            busy[lane] = !at[lane].done();
        });
    }
    give_totals(sums);
    for (int mask = lanes_per_segment / 2; mask > 0; mask /= 2) {
        exchange(tally, mask, merged_tally{});
    }
    each([&](int lane) {
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        if (lane % lanes_per_segment != 0 || which >= count) return;
        // Lanes do not count what follows from the shape.
        tally[lane].elements = at[lane].rows * at[lane].cols;
        tally[lane].blocks = at[lane].rows * at[lane].across;
        out[which] = tally[lane];
    });
}

}  // namespace mx::codec::cuda
