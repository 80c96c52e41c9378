// SPDX-License-Identifier: Apache-2.0
// Segments with blocks that are short pieces of rows, with one lane per block: OCP recipes
// (row_grid.hpp), if at most codes are requested per block. nvfp4_body.hpp has those under NVFP4.
//
// Sixteen lanes process a segment, lane k the blocks k, k + 16, k + 32, ... A block is read once.
// If numbers of 32 bits are not enough for a block, it is only marked; the body of segments
// processes it later.
#pragma once

#include <climits>
#include <cmath>

#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_values.hpp"
#include "libmx/codec/cuda/segment_blocks.hpp"

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
    /// Goes to block `b` of the segment.
    MX_HD void go_to(std::uint32_t b) {
        block = b;
        row = b / across;
        col = b - row * across;
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
        return a;
    }
};

// Counts and verdicts of a block with magnitudes between `least`, the smallest non-zero one, and
// `most`. A count is made only if an end of the range reaches its bound. same_code(): whether both
// get the same code; called if the smaller one does not become zero.
template <typename Values, typename SameCode>
MX_HD inline void count_row(const row_bounds& from, const Values& y, std::uint32_t least,
                            std::uint32_t most, bool has_zeros, std::uint32_t size,
                            SameCode&& same_code, row_tally& tally) {
    std::uint32_t nonzero = size, top = 0, underflow = 0;
    if (has_zeros) {
        std::uint32_t count[1];
        y.reaching({from.nonzero}, count);
        nonzero = count[0];
    }
    if (most >= from.top) {
        std::uint32_t count[1];
        y.reaching({from.top}, count);
        top = count[0];
        tally.top_code += top;
    }
    if (most >= from.overflow) {
        std::uint32_t count[2];
        y.reaching({from.overflow, from.clamp}, count);
        tally.overflow += count[0];
        tally.clamp += count[1];
    }
    if (least < from.normal) {
        std::uint32_t count[2];
        y.reaching({from.kept, from.normal}, count);
        underflow = nonzero - count[0];
        tally.underflow += underflow;
        tally.subnormal += count[0] - count[1];
    }
    tally.nonzero += nonzero;
    tally.zero += most == 0 ? 1u : 0u;
    if (nonzero < 2) return;
    tally.eligible += 1;
    tally.collapsed += least >= from.kept && same_code() ? 1u : 0u;
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

// A block after reading. Scale has `fits`, whether numbers of 32 bits are enough, and `level`, the
// exponent to which its sums belong.
template <typename Values, typename Scale>
struct row_block {
    Values values;  // as stored; later multiplied by a power of two
    magnitude_range range;
    std::uint32_t least;  // the smallest non-zero magnitude, if any
    Scale scale;

    MX_HD void survey(std::uint32_t count) {
        range = values.range();
        if (count < static_cast<std::uint32_t>(Values::size)) range.least = 0;  // padded with zeros
        least = range.least != 0 ? range.least : values.least_nonzero();
    }
};

// n * times, times < 2^48; the result fits.
MX_HD inline wide_integer multiplied(const wide_integer& n, std::uint64_t times) {
    if (times == 1) return n;
    wide_integer all = product_of(n.low & 0xffffffffu, times);
    const wide_integer upper = product_of(n.low >> 32, times);
    const std::uint64_t high = static_cast<std::uint64_t>(upper.high) << 32 | upper.low >> 32;
    all = all + wide_integer{upper.low << 32, static_cast<std::int64_t>(high)};
    const std::uint64_t top = static_cast<std::uint64_t>(n.high) * times;
    all.high = static_cast<std::int64_t>(static_cast<std::uint64_t>(all.high) + top);
    return all;
}

// The units of the sums of lanes: x in 2^x, d in times * 2^d, products in products of these.
struct row_units {
    int x, d;
    std::uint32_t times;
};

// The sums of the lanes to those of the recipe.
template <typename Totals>
MX_HD inline void give_rows(const row_units& u, const per_lane<Totals>& sums,
                            block::exact_totals& totals) {
    const std::uint64_t times = u.times;
    per_lane<lane_totals<false>> all;
    each([&](int lane) {
        const Totals& own = sums[lane];
        all[lane] = no_totals<false>(totals);
        all[lane].aimed = 0;
        all[lane].x.start(totals.x, widened(own.x), u.x);
        all[lane].d.start(totals.d, multiplied(widened(own.d), times), u.d);
        all[lane].x2.start(totals.x2, own.x2, 2 * u.x);
        all[lane].d2.start(totals.d2, multiplied(own.d2, times * times), 2 * u.d);
        all[lane].xd.start(totals.xd, multiplied(own.xd, times), u.x + u.d);
    });
    give_totals(all);
}

// The scale of a block under an OCP recipe, and its magnitudes |y| = |x| / S, the smallest without
// zeros.
struct row_scale {
    int level;  // the code
    float reciprocal, least, most;
    bool fits;
};

MX_HD inline row_scale scale_of(const row_grid& g, std::uint32_t largest,
                                std::uint32_t least_nonzero) {
    row_scale s{};
    const std::uint32_t exponent = (largest + g.rule_step) >> 23;
    s.level = largest == 0 ? g.least_scale : static_cast<int>(exponent) - g.rule_base;
    s.reciprocal = base::float_from_bits(static_cast<std::uint32_t>(g.reciprocal - s.level) << 23);
    s.least = base::float_from_bits(least_nonzero) * s.reciprocal;
    s.most = base::float_from_bits(largest) * s.reciprocal;
    // NaN, Inf, subnormals, a scale at an end of its range, numbers too far apart.
    s.fits = largest == 0 || (least_nonzero >= 0x00800000u && largest < g.nan_from &&
                              exponent < 255 && s.level >= g.least_scale &&
                              s.level <= g.most_scale && s.least >= g.near && s.most < g.far);
    return s;
}

// The largest error of a lane: float32 bits plus the exponent of the scale in place, less a bias
// that keeps them within 32 bits. They compare like the numbers.
struct row_error {
    static constexpr int none = INT_MIN;
    int key = none;

    MX_HD void add(float of_y, int exponent) {
        const int own = static_cast<int>(base::bits_of(of_y) - (127u << 23)) + exponent * (1 << 23);
        if (of_y != 0) key = larger{}(key, own);
    }
    MX_HD double value() const {
        if (key == none) return 0;
        const auto mantissa = static_cast<std::uint64_t>(key & 0x7fffff) << 29;
        const auto field = static_cast<std::uint64_t>((key >> 23) + 1023) << 52;
        return base::double_from_bits(field | mantissa);
    }
};

}  // namespace detail

/// What the warps of an OCP recipe share.
struct row_recipe {
    row_grid grid;
    block_results blocks;
    block::exact_totals* totals;
};
MX_HD inline row_recipe row_recipe_of(const device_recipe& r) {
    return {row_grid_of(r.params), r.blocks, r.totals};
}

/// The rows of an OCP recipe, which takes_rows() accepts. With `coded`, also writes codes and the
/// facts of scales. Stored is the kind of block for the stored type: bf16_block for bf16,
/// float_block for all. (nvfp4_rows in nvfp4_body.hpp has the same members.)
template <bool coded, typename Stored, typename Converter>
class ocp_rows {
  public:
    using values = Stored;
    using scale = detail::row_scale;
    using block = detail::row_block<values, scale>;
    // |y| is zero or between 2^(emax - 19) and 2^(emax + 2), q below 2^(emax + 1), so q is a
    // multiple of 2^(emax - 21), 32 units: of its last place, or of the last place of the format.
    using sums = row_sums<values, 5>;
    using totals = typename sums::totals;
    using error = detail::row_error;

    MX_HD ocp_rows(const row_recipe& shared, const ocp_params& p) : shared_(shared), convert_(p) {}

    MX_HD void survey(std::uint32_t size, block& b) const {
        b.survey(size);
        b.scale = detail::scale_of(shared_.grid, b.range.most, b.least);
    }

    /// Adds a block that was read, and writes it where codes are wanted. `lowest`: the level of the
    /// totals.
    MX_HD void add(const detail::row_walk& at, block& b, int lowest, std::uint64_t first_block,
                   totals& to, detail::row_tally& tally, error& most) const {
        const row_grid& g = shared_.grid;
        const std::uint32_t largest = b.range.most;
        const scale& s = b.scale;
        values& y = b.values;
        y.scale(s.reciprocal);
        detail::count_row(
            g.bounds, y, base::bits_of(s.least), base::bits_of(s.most), b.range.least == 0,
            at.size(), [&] { return rounded(g, s.least) == rounded(g, s.most); }, tally);
        // Last: values leave their registers as they are added up.
        sums sum;
        row_codes codes;
        const float own =
            add_rounded<coded>(g, convert_, y, base::bits_of(s.most) >= g.bounds.clamp, sum, codes);
        const int shift = largest == 0 ? 0 : s.level - lowest;
        sum.add_to(to, {shift, shift, 1});
        most.add(own, s.level - format::e8m0_bias + g.unit);
        tally.counted_max = larger{}(tally.counted_max, largest);
        if constexpr (coded) {
            const block_results& blocks = shared_.blocks;
            const std::uint64_t index = first_block + at.block;
            detail::write_codes(codes, at.size(), blocks.codes + index * blocks.stride);
            // A block of zeros has the least scale under every rule.
            blocks.scale_code[index] = static_cast<std::uint8_t>(largest == 0 ? 0 : s.level);
            blocks.offset[index] = 0;
            blocks.amax[index] = blocks.x_max[index] = largest;
            blocks.x_min[index] = b.least;
        }
    }

    MX_HD mx::block::exact_totals& recipe_totals() const { return *shared_.totals; }

    /// The units of sums at a level.
    MX_HD detail::row_units units(int level) const {
        const int unit = level - format::e8m0_bias + shared_.grid.unit;
        return {unit + sums::x_place, unit + sums::q_place, 1};
    }

    /// The largest error of each lane.
    MX_HD void finish(const device_values&, per_lane<detail::row_walk>&, const per_lane<error>& own,
                      per_lane<double>& most) const {
        each([&](int lane) { most[lane] = own[lane].value(); });
    }

  private:
    const row_recipe& shared_;
    Converter convert_;
};

/// Quantizes segment `first_segment` of a launch and, if there is one, the next, under recipe
/// `slot`, that of `rows`; the same bytes as the reference, except for the blocks that it marks,
/// which are left out. Called by all lanes of a warp.
template <typename Rows>
MX_HD inline void quantize_rows(const Rows& rows, const launch& l, std::uint32_t slot,
                                std::uint32_t first_segment) {
    using namespace detail;
    using values = typename Rows::values;
    using sums_of = typename Rows::sums;
    constexpr int none = INT_MIN;                                 // no level
    const std::uint32_t count = l.segment_count - first_segment;  // two, or one
    per_lane<row_walk> at;
    per_lane<std::uint64_t> first_block;
    per_lane<row_tally> tally;
    per_lane<typename Rows::error> error;
    per_lane<values> ahead;
    each([&](int lane) {
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        tally[lane] = {};
        error[lane] = {};
        at[lane] = {};  // nothing to do
        first_block[lane] = 0;
        if (which >= count) return;
        const device_segment& s = l.segments[first_segment + which];
        at[lane] = walk_of(s, static_cast<std::uint32_t>(lane % lanes_per_segment));
        first_block[lane] = s.first_block;
        if constexpr (values::ahead) load_row(at[lane], l.values, ahead[lane]);
    });
    std::uint32_t round = 0;
    per_lane<bool> busy;
    do {
        per_lane<typename Rows::totals> sums;
        each([&](int lane) { sums[lane] = {}; });
        int lowest = none;
        for (int i = 0; i < sums_of::rounds; ++i) {
            per_lane<typename Rows::block> b;
            per_lane<int> level;
            each([&](int lane) {
                level[lane] = none;
                busy[lane] = !at[lane].done();
                if (!busy[lane]) return;
                if constexpr (values::ahead) {
                    b[lane].values = ahead[lane];
                } else {
                    load_row(at[lane], l.values, b[lane].values);
                }
                rows.survey(at[lane].size(), b[lane]);
                if (b[lane].scale.fits && b[lane].range.most != 0)
                    level[lane] = b[lane].scale.level;
            });
            if (!any(busy)) break;
            const int most = largest(level);
            if (most != none) {
                if (lowest == none) lowest = most - (sums_of::span - 2);
                if (most > lowest + sums_of::span || most < lowest + sums_of::span / 2) break;
            }
            per_lane<bool> rare;
            each([&](int lane) {
                rare[lane] = false;
                if (!busy[lane]) return;
                const auto& s = b[lane].scale;
                rare[lane] = !s.fits || (b[lane].range.most != 0 && s.level < lowest);
                const row_walk here = at[lane];
                at[lane].advance();
                if constexpr (values::ahead) load_row(at[lane], l.values, ahead[lane]);
                if (rare[lane]) return;
                rows.add(here, b[lane], lowest, first_block[lane], sums[lane], tally[lane],
                         error[lane]);
            });
            const std::uint32_t bits = ballot(rare);
            each([&](int lane) {
                const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
                if (lane % lanes_per_segment != 0 || !busy[lane]) return;
                marks_of(l, slot, first_segment + which)[round] =
                    static_cast<std::uint16_t>(bits >> (which * lanes_per_segment));
            });
            ++round;
        }
        if (lowest != none) give_rows(rows.units(lowest), sums, rows.recipe_totals());
    } while (any(busy));
    per_lane<double> max_error;
    rows.finish(l.values, at, error, max_error);
    for (int mask = lanes_per_segment / 2; mask > 0; mask /= 2) {
        exchange(tally, mask, merged_rows{});
        exchange(max_error, mask, larger{});
    }
    each([&](int lane) {
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        if (lane % lanes_per_segment != 0 || which >= count) return;
        const std::uint32_t s = first_segment + which;
        const row_tally& from = tally[lane];
        segment_tally& all = tally_of(l, slot, s);
        all = {};
        all.max_error = max_error[lane];
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
        // Read again: a sum of the marks would take a register in the loop.
        const std::uint16_t* const marks = marks_of(l, slot, s);
        std::uint32_t marked = 0;
        for (std::uint32_t i = 0; i * blocks_per_mark < at[lane].blocks; ++i) marked |= marks[i];
        if (marked != 0) note_marks(l, slot, s);
    });
}

}  // namespace mx::codec::cuda
