// SPDX-License-Identifier: Apache-2.0
// A segment by 32 lanes: the steps of plain_block.hpp with the sums of determinism.md.
//
// Eight lanes work on a block and four blocks are under way at a time. Lane l of the eight holds
// the positions l, l + 8, l + 16 and l + 24 of a chunk, so that distances 16 and 8 are additions
// inside a lane, and 4, 2 and 1 exchanges with a neighbour. Block i adds to segment lane i mod 16:
// those with equal i mod 4 meet the same eight lanes, each of the first four of which keeps one
// sum.
#pragma once

#include <algorithm>

#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/lane_group.hpp"
#include "libmx/codec/plain_block.hpp"
#include "libmx/codec/stored_value.hpp"

namespace mx::codec::cuda {
namespace detail {

inline constexpr int lanes_per_block = 8;
inline constexpr std::uint32_t blocks_at_once = 4;
inline constexpr int values_per_lane = 4;
static_assert(lanes_per_block * values_per_lane == chunk_size);

template <typename T>
struct quad {
    T v[values_per_lane];
};

MX_HD inline float load_value(const device_values& values, std::uint64_t at) {
    return stored_value(values.type, values.data, at);
}

// A block, as each of its lanes sees it.
struct lane_block {
    std::uint32_t index;  // in the segment
    std::uint32_t row, col, rows, cols;
    std::uint32_t size;  // 0: there is no such block
    bool counts;         // its elements are quantized; else it is poisoned, or there is none
    bool in_x;           // sums in double
    int exponent;
    float offset;
    block_survey seen;
    element_tally tally;
    std::uint32_t ruled;
    block::block_stats stats;
};

// What a lane has added up of its segment.
struct lane_sums {
    double error2, x2, xd, d2, error, max_error;
    double clamp_error2, underflow_error2, grid_error2;
    std::uint32_t elements, nan, inf, poisoned, nonzero;
    std::uint32_t overflow, clamp, top_code, underflow, subnormal;
    std::uint32_t blocks, zero, eligible, collapsed, saturated, dead;
    std::uint32_t counted_max;
};

struct add {
    template <typename T>
    MX_HD T operator()(T a, T b) const {
        return a + b;
    }
};
struct larger {
    template <typename T>
    MX_HD T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};

MX_HD inline lane_block begin(const device_segment& s, std::uint32_t index) {
    lane_block b{};
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
MX_HD inline cell cell_of(const lane_block& b, std::uint32_t position) {
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

template <typename T, typename Combine>
MX_HD inline void over_block(per_lane<T>& v, Combine combine) {
    for (int mask = lanes_per_block / 2; mask > 0; mask /= 2) exchange(v, mask, combine);
}

// The sum of a chunk in the shape of sum_chunk, in all lanes of the block.
template <typename T, typename Terms, typename Value>
MX_HD inline void chunk_sum(const per_lane<Terms>& terms, per_lane<T>& sum, Value value) {
    each([&](int lane) {
        const Terms& t = terms[lane];
        sum[lane] = (value(t, 0) + value(t, 2)) + (value(t, 1) + value(t, 3));
    });
    over_block(sum, add{});
}

template <typename T>
struct chunk_of_terms {
    quad<element_term<T>> term;
    quad<block::error_part> part;
};

// The chunk's sums added to those of the blocks whose sums are of this kind.
template <typename T>
MX_HD inline void add_chunk(const per_lane<chunk_of_terms<T>>& terms, bool parts,
                            per_lane<lane_block>& b) {
    using chunk = chunk_of_terms<T>;
    constexpr bool in_x = std::is_same_v<T, double>;
    per_lane<T> sum;
    const auto to = [&](double block::block_sums::*member) {
        each([&](int lane) {
            if (b[lane].counts && b[lane].in_x == in_x) {
                b[lane].stats.sum.*member += static_cast<double>(sum[lane]);
            }
        });
    };
    chunk_sum(terms, sum, [](const chunk& t, int k) { return t.term.v[k].error2(); });
    to(&block::block_sums::error2);
    chunk_sum(terms, sum, [](const chunk& t, int k) { return t.term.v[k].x2(); });
    to(&block::block_sums::x2);
    chunk_sum(terms, sum, [](const chunk& t, int k) { return t.term.v[k].xd(); });
    to(&block::block_sums::xd);
    chunk_sum(terms, sum, [](const chunk& t, int k) { return t.term.v[k].d2(); });
    to(&block::block_sums::d2);
    per_lane<double> error;
    chunk_sum(terms, error, [](const chunk& t, int k) { return t.term.v[k].error(); });
    each([&](int lane) {
        lane_block& own = b[lane];
        if (!own.counts || own.in_x != in_x) return;
        own.stats.sum.error += error[lane];
        // Of this lane alone; the lanes meet when the block is done.
        for (int k = 0; k < values_per_lane; ++k) {
            const T e = terms[lane].term.v[k].e;
            const auto size = static_cast<double>(e < 0 ? -e : e);
            own.stats.sum.max_error = larger{}(own.stats.sum.max_error, size);
        }
    });
    if (!parts) return;
    const auto part_to = [&](block::error_part which, double block::block_parts::*member) {
        chunk_sum(terms, sum, [which](const chunk& t, int k) {
            return t.part.v[k] == which ? t.term.v[k].error2() : T{0};
        });
        each([&](int lane) {
            if (b[lane].counts && b[lane].in_x == in_x) {
                b[lane].stats.part.*member += static_cast<double>(sum[lane]);
            }
        });
    };
    part_to(block::error_part::clamp, &block::block_parts::clamp_error2);
    part_to(block::error_part::underflow, &block::block_parts::underflow_error2);
    part_to(block::error_part::grid, &block::block_parts::grid_error2);
}

// Loads a chunk of every block; positions beyond a block's end are left alone.
MX_HD inline void load_chunk(const device_segment& s, const device_values& values,
                             std::uint32_t chunk, const per_lane<lane_block>& b,
                             per_lane<quad<float>>& x) {
    each([&](int lane) {
        for (int k = 0; k < values_per_lane; ++k) {
            const std::uint32_t position = position_of(chunk, lane, k);
            if (position >= b[lane].size) continue;
            const cell c = cell_of(b[lane], position);
            x[lane].v[k] = load_value(values, s.at + c.row * values.stride + c.col);
        }
    });
}

// Calls what(position, k) for the positions of a chunk that lie in the lane's block.
template <typename What>
MX_HD inline void for_positions(const lane_block& b, std::uint32_t chunk, int lane, What&& what) {
    for (int k = 0; k < values_per_lane; ++k) {
        const std::uint32_t position = position_of(chunk, lane, k);
        if (position < b.size) what(position, k);
    }
}

// Surveys of the lanes of a block become that of the block.
MX_HD inline void merge_surveys(bool with_range, per_lane<lane_block>& b) {
    per_lane<block_survey> seen;
    per_lane<bool> special;
    each([&](int lane) { seen[lane] = b[lane].seen; });
    over_block(seen, &block_survey::amax, larger{});
    each([&](int lane) { special[lane] = seen[lane].amax >= base::f32_infinity; });
    over_block(seen, &block_survey::least,
               [](std::uint32_t a, std::uint32_t c) { return a < c ? a : c; });
    if (any(special)) {
        over_block(seen, &block_survey::nan, add{});
        over_block(seen, &block_survey::inf, add{});
    }
    if (with_range) {
        over_block(seen, &block_survey::low, [](float a, float c) { return c < a ? c : a; });
        over_block(seen, &block_survey::high, [](float a, float c) { return c > a ? c : a; });
    }
    each([&](int lane) { b[lane].seen = seen[lane]; });
}

// Tallies of the lanes of a block become that of the block.
MX_HD inline void merge_tallies(per_lane<lane_block>& b) {
    per_lane<element_tally> tally;
    each([&](int lane) { tally[lane] = b[lane].tally; });
    over_block(tally, [](element_tally a, const element_tally& other) {
        a.merge(other);
        return a;
    });
    each([&](int lane) { b[lane].tally = tally[lane]; });
}

// Finds scales: the first look at the blocks.
MX_HD inline void survey_blocks(const plain_params& p, const device_segment& s,
                                const device_values& values, std::uint32_t chunks,
                                per_lane<lane_block>& b, per_lane<quad<float>>& x) {
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
        own.in_x = sums_in_x(p, own.seen, own.exponent);
    });
}

// Elements to codes, terms and sums.
template <bool parts>
MX_HD inline void encode_blocks(const plain_params& p, const device_segment& s,
                                const device_values& values, std::uint32_t chunks,
                                per_lane<lane_block>& b, per_lane<quad<float>>& x,
                                const block_results& to) {
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, s.tensor_id};
    per_lane<bool> narrow, wide;
    each([&](int lane) {
        narrow[lane] = b[lane].counts && !b[lane].in_x;
        wide[lane] = b[lane].counts && b[lane].in_x;
    });
    const bool any_narrow = any(narrow);
    const bool any_wide = any(wide);
    for (std::uint32_t c = 0; c < chunks; ++c) {
        if (chunks > 1) load_chunk(s, values, c, b, x);
        per_lane<quad<element_encoder::element>> e;
        each([&](int lane) {
            lane_block& own = b[lane];
            const element_encoder encoder(p, own.exponent);
            std::uint8_t* const codes =
                to.codes == nullptr ? nullptr : to.codes + (s.first_block + own.index) * to.stride;
            for_positions(own, c, lane, [&](std::uint32_t position, int k) {
                element_encoder::element& one = e[lane].v[k];
                one = {p.poisoned_code, block::error_part::grid};
                if (own.counts) {
                    std::uint32_t draw = 0;
                    if (random) {
                        const cell at = cell_of(own, position);
                        draw = base::random_u32(key, s.first + at.row * s.row_stride + at.col);
                    }
                    one = encoder.encode(x[lane].v[k] - own.offset, draw, own.tally);
                }
                if (codes != nullptr) codes[position] = one.code;
            });
        });
        if (any_narrow) {
            per_lane<chunk_of_terms<float>> terms;
            each([&](int lane) {
                terms[lane] = {};
                const float reciprocal = base::exact_pow2f(narrow[lane] ? -b[lane].exponent : 0);
                if (!narrow[lane]) return;
                for_positions(b[lane], c, lane, [&](std::uint32_t, int k) {
                    const element_encoder::element& one = e[lane].v[k];
                    terms[lane].term.v[k] =
                        term_in_scale(x[lane].v[k], reciprocal, p.value[one.code]);
                    terms[lane].part.v[k] = one.part;
                });
            });
            add_chunk(terms, parts, b);
        }
        if (any_wide) {
            per_lane<chunk_of_terms<double>> terms;
            each([&](int lane) {
                terms[lane] = {};
                if (!wide[lane]) return;
                const double scale = base::exact_pow2(b[lane].exponent);
                for_positions(b[lane], c, lane, [&](std::uint32_t, int k) {
                    const element_encoder::element& one = e[lane].v[k];
                    terms[lane].term.v[k] =
                        term_in_x(x[lane].v[k], b[lane].offset, scale, p.value[one.code]);
                    terms[lane].part.v[k] = one.part;
                });
            });
            add_chunk(terms, parts, b);
        }
    }
    per_lane<double> most;
    each([&](int lane) { most[lane] = b[lane].stats.sum.max_error; });
    over_block(most, larger{});
    merge_tallies(b);
    each([&](int lane) {
        lane_block& own = b[lane];
        if (!own.counts) return;
        own.stats.sum.max_error = most[lane];
        own.tally.finish(p.element, own.stats);
        if (!own.in_x) {
            scale_sums(own.stats.sum, own.stats.part, base::exact_pow2(own.exponent));
        }
    });
}

// What a block adds to figures that any lane may keep.
MX_HD inline void add_counts(const block::block_stats& b, lane_sums& sums) {
    sums.max_error = larger{}(sums.max_error, b.sum.max_error);
    block::each_count(block::plus{}, sums, b.count);
    sums.blocks += 1;
    block::each_flag(block::plus{}, sums, b.is);
    sums.counted_max = larger{}(sums.counted_max, b.counted_max);
}

// A block done: its sums to the lane that keeps them, its facts to where they are wanted.
MX_HD inline void add_block(const device_segment& s, std::uint32_t round, int lane,
                            const lane_block& b, lane_sums& sums, const block_results& to) {
    if (b.size == 0) return;
    const int sub = lane % lanes_per_block;
    const block::block_stats& stats = b.stats;
    if (sub == static_cast<int>(round % 4)) {
        block::each_sum(block::plus{}, sums, stats.sum);
        sums.clamp_error2 += stats.part.clamp_error2;
        sums.underflow_error2 += stats.part.underflow_error2;
        sums.grid_error2 += stats.part.grid_error2;
    }
    if (sub != 0) return;
    add_counts(stats, sums);
    const std::uint64_t at = s.first_block + b.index;
    to.put(at, stats);
    if (to.stats != nullptr) to.stats[at].scale = scale_of_code(stats.scale_code);
}

template <auto... members, typename Combine>
MX_HD inline void exchange_all(per_lane<lane_sums>& sums, int mask, Combine combine) {
    (exchange(sums, members, mask, combine), ...);
}

// Segment lane 4j + g is lane j of the eight lanes g: distances 8, 4, 2, 1 are masks 2, 1, 16, 8.
template <auto... members>
MX_HD inline void add_lanes(per_lane<lane_sums>& sums) {
    exchange_all<members...>(sums, 2, add{});
    exchange_all<members...>(sums, 1, add{});
    exchange_all<members...>(sums, 16, add{});
    exchange_all<members...>(sums, 8, add{});
}

// What the first lane of each eight keeps for the four blocks.
template <auto... members, typename Combine>
MX_HD inline void over_groups(per_lane<lane_sums>& sums, Combine combine) {
    exchange_all<members...>(sums, 16, combine);
    exchange_all<members...>(sums, 8, combine);
}

MX_HD inline void write_sums(const lane_sums& s, block::segment_stats& out) {
    const auto take = [](std::uint64_t& to, std::uint32_t n) { to = n; };
    block::each_count(take, out.count, s);
    out.count.dequant_overflow = 0;
    out.block.blocks = s.blocks;
    block::each_flag(take, out.block, s);
    out.sum = {s.error2, s.x2, s.xd, s.d2, s.error, s.max_error};
    out.part = {s.clamp_error2, s.underflow_error2, s.grid_error2};
    out.counted_max = s.counted_max;
}

MX_HD inline void finish(per_lane<lane_sums>& sums, block::segment_stats& out) {
    using s_t = lane_sums;
    add_lanes<&s_t::error2, &s_t::x2, &s_t::xd, &s_t::d2, &s_t::error, &s_t::clamp_error2,
              &s_t::underflow_error2, &s_t::grid_error2>(sums);
    over_groups<&s_t::max_error, &s_t::counted_max>(sums, larger{});
    over_groups<&s_t::elements, &s_t::nan, &s_t::inf, &s_t::poisoned, &s_t::nonzero, &s_t::overflow,
                &s_t::clamp, &s_t::top_code, &s_t::underflow, &s_t::subnormal, &s_t::blocks,
                &s_t::zero, &s_t::eligible, &s_t::collapsed, &s_t::saturated, &s_t::dead>(sums,
                                                                                          add{});
    each([&](int lane) {
        if (lane == 0) write_sums(sums[lane], out);
    });
}

}  // namespace detail

/// What scalar::quantize makes of the segment, byte for byte, with the parts of the squared error
/// where `parts` says so. Called by all lanes of a warp; one of them writes `out`.
template <bool parts>
MX_HD inline void quantize_segment(const plain_params& p, const device_segment& s,
                                   const device_values& values, const block_results& to,
                                   block::segment_stats& out) {
    using namespace detail;
    const std::uint32_t blocks =
        (s.rows + s.block_rows - 1) / s.block_rows * ((s.cols + s.block_cols - 1) / s.block_cols);
    const std::uint32_t largest = std::min(s.rows, s.block_rows) * std::min(s.cols, s.block_cols);
    const std::uint32_t chunks = (largest + chunk_size - 1) / chunk_size;
    per_lane<lane_sums> sums;
    each([&](int lane) { sums[lane] = {}; });
    for (std::uint32_t round = 0; round * blocks_at_once < blocks; ++round) {
        per_lane<lane_block> b;
        per_lane<quad<float>> x;
        each([&](int lane) {
            const auto group = static_cast<std::uint32_t>(lane / lanes_per_block);
            b[lane] = begin(s, round * blocks_at_once + group);
        });
        survey_blocks(p, s, values, chunks, b, x);
        encode_blocks<parts>(p, s, values, chunks, b, x, to);
        each([&](int lane) { add_block(s, round, lane, b[lane], sums[lane], to); });
    }
    finish(sums, out);
}

}  // namespace mx::codec::cuda
