// SPDX-License-Identifier: Apache-2.0
// A segment by 32 lanes: the steps of ocp_block.hpp or dialect_block.hpp. A lane processes a small
// block alone, lanes together a larger one: each surveys and encodes its own elements, read as they
// are stored, and adds them up (lane_totals.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/lane_group.hpp"
#include "libmx/codec/cuda/lane_totals.hpp"
#include "libmx/codec/cuda/segment_blocks.hpp"
#include "libmx/codec/dialect_block.hpp"
#include "libmx/codec/ocp_block.hpp"

namespace mx::codec::cuda {

/// The family of OCP recipes, beside those of dialect_block.hpp.
struct ocp_scales {
    using params = ocp_params;
    struct scale {
        bool counts;  ///< its elements are quantized; else the block is poisoned
        int exponent;
        float offset;
    };
};
/// Lanes to a block under an OCP recipe: neighbouring lanes read neighbouring elements.
inline constexpr int ocp_lanes = 8;

namespace detail {

template <typename Family>
inline constexpr bool is_ocp = std::is_same_v<Family, ocp_scales>;

// A segment, the parameters of its recipe, and where its values are.
template <typename Params>
struct segment_work {
    const Params& p;
    device_segment s;
    device_values values;
};
using ocp_work = segment_work<ocp_params>;
using dialect_work = segment_work<block_params>;

// A block and its scale.
template <typename Family>
struct scaled_block {
    lane_window at;
    std::uint32_t amax;  // block_stats::amax
    typename Family::scale scale;
};

// An element of a block.
struct lane_element {
    float x;
    std::uint32_t position;  // in the block
    std::uint64_t index;     // in the tensor
};

// Calls what(element) for every `step`th element of a block from `begin` on, before `end`.
template <typename Params, typename What>
MX_HD inline void for_elements(const segment_work<Params>& w, const lane_window& b,
                               std::uint32_t begin, std::uint32_t end, std::uint32_t step,
                               What&& what) {
    if (begin >= end) return;
    std::uint32_t row = b.rows == 1 ? 0 : begin / b.cols;
    std::uint32_t col = begin - row * b.cols;
    for (std::uint32_t i = begin; i < end; i += step, col += step) {
        for (; col >= b.cols; col -= b.cols) ++row;
        const std::uint64_t in_row = b.col + col;
        const std::uint64_t own_row = b.row + row;
        what(lane_element{load_value(w.values, w.s.at + own_row * w.values.stride + in_row), i,
                          w.s.first + own_row * w.s.row_stride + in_row});
    }
}

// The same for the elements of a lane.
template <int lanes, typename Params, typename What>
MX_HD inline void for_own(const segment_work<Params>& w, const lane_window& b, int lane,
                          What&& what) {
    for_elements(w, b, static_cast<std::uint32_t>(lane % lanes), b.size, lanes, what);
}

template <typename Params>
MX_HD inline std::uint32_t draw_of(const segment_work<Params>& w, const lane_element& e) {
    const ocp_params& p = w.p;
    if (p.mode.how != format::rounding::stochastic) return 0;
    return base::random_u32({p.seed, w.s.tensor_id}, e.index);
}

// The sign of the sum over the lanes of a block.
template <int lanes>
MX_HD inline void add_up_signs(per_lane<base::exact_sum>& sum, per_lane<int>& sign) {
    MX_ROLLED
    for (std::size_t i = 0; lanes > 1 && i < base::exact_sum::digits; ++i) {
        per_lane<std::int64_t> digit;
        each([&](int lane) { digit[lane] = sum[lane].digit(i); });
        over_block<lanes>(digit, plus{});
        each([&](int lane) { sum[lane].digit(i) = digit[lane]; });
    }
    each([&](int lane) { sign[lane] = sum[lane].sign(); });
}

template <typename T>
using either = float_scale_steps::under_both<T>;
using float_scaled_block = scaled_block<float_scales>;

// Four-over-six of dialect te: whether a block takes the second scale. A lane adds up whole rows.
template <int lanes>
MX_HD inline void select_as_te(const dialect_work& w, const per_lane<float_scaled_block>& b,
                               const per_lane<float_scale>& four, per_lane<bool>& takes) {
    constexpr int rows = std::max(float_scale_steps::largest_te_tile / lanes, 1);
    per_lane<either<float>> sum;
    each([&](int lane) {
        const float_scaled_block& own = b[lane];
        const float_scale_encoder by_six(w.p, own.scale), by_four(w.p, four[lane]);
        const std::uint32_t cols = float_scale_steps::te_cols(own.at.size, own.at.cols);
        either<float> row[rows] = {};
        MX_ROLLED
        for (int r = 0; r < rows; ++r) {
            const auto begin = static_cast<std::uint64_t>(lane % lanes + r * lanes) * cols;
            if (begin >= own.at.size) break;
            const auto first = static_cast<std::uint32_t>(begin);
            for_elements(w, own.at, first, std::min(first + cols, own.at.size), 1,
                         [&](const lane_element& e) {
                             row[r].six += float_scale_steps::te_error(w.p, by_six, own.scale, e.x);
                             row[r].four +=
                                 float_scale_steps::te_error(w.p, by_four, four[lane], e.x);
                         });
        }
        for (int distance = rows / 2; distance > 0; distance /= 2) {
            for (int r = 0; r < distance; ++r) {
                row[r].six += row[r + distance].six;
                row[r].four += row[r + distance].four;
            }
        }
        sum[lane] = row[0];
    });
    over_block<lanes>(sum, [](const either<float>& a, const either<float>& c) {
        return either<float>{a.six + c.six, a.four + c.four};
    });
    each([&](int lane) { takes[lane] = sum[lane].four < sum[lane].six; });
}

// Other four-over-six.
template <int lanes>
MX_HD inline void select_by_error(const dialect_work& w, const per_lane<float_scaled_block>& b,
                                  const per_lane<float_scale>& four, per_lane<bool>& takes) {
    const auto for_errors = [&](int lane, auto&& visit) {
        const float_scale_encoder by_six(w.p, b[lane].scale), by_four(w.p, four[lane]);
        for_own<lanes>(w, b[lane].at, lane, [&](const lane_element& e) {
            const std::uint32_t draw = draw_of(w, e);
            const auto x = static_cast<double>(e.x);
            visit(by_six.encode(e.x, draw).value - x, by_four.encode(e.x, draw).value - x);
        });
    };
    per_lane<either<double>> error;
    each([&](int lane) {
        either<double> own{};
        // Blocks without a scale may have NaN and Inf.
        if (!base::is_nan(b[lane].scale.value)) {
            for_errors(lane, [&](double of_six, double of_four) {
                own.six = float_scale_steps::with_error(w.p, own.six, of_six);
                own.four = float_scale_steps::with_error(w.p, own.four, of_four);
            });
        }
        error[lane] = own;
    });
    over_block<lanes>(error, [&](const either<double>& a, const either<double>& c) {
        return either<double>{float_scale_steps::merged_error(w.p, a.six, c.six),
                              float_scale_steps::merged_error(w.p, a.four, c.four)};
    });
    per_lane<bool> close;
    each([&](int lane) {
        takes[lane] = error[lane].four < error[lane].six;
        close[lane] = float_scale_steps::are_close(w.p, error[lane]);
    });
    if (!any(close)) return;
    per_lane<base::exact_sum> difference;
    per_lane<int> sign;
    each([&](int lane) {
        difference[lane] = {};
        if (!close[lane]) return;
        for_errors(lane, [&](double of_six, double of_four) {
            float_scale_steps::add_exactly(w.p, of_four, 1.0, difference[lane]);
            float_scale_steps::add_exactly(w.p, of_six, -1.0, difference[lane]);
        });
    });
    add_up_signs<lanes>(difference, sign);
    each([&](int lane) {
        if (close[lane]) takes[lane] = sign[lane] < 0;
    });
}

// The blocks with the scales that four-over-six selects.
template <int lanes>
MX_HD_CALL per_lane<float_scaled_block> selected(dialect_work w, per_lane<float_scaled_block> b) {
    per_lane<float_scale> four;
    per_lane<bool> takes;
    each([&](int lane) { four[lane] = choose_scale(w.p, b[lane].amax, float_scale_steps::four); });
    if (w.p.by->two_level.value == two_level_kind::te) {
        select_as_te<lanes>(w, b, four, takes);
    } else {
        select_by_error<lanes>(w, b, four, takes);
    }
    each([&](int lane) {
        if (takes[lane] && !base::is_nan(b[lane].scale.value)) b[lane].scale = four[lane];
    });
    return b;
}

// The blocks with the best scales. The lanes of a block try its codes one after another.
template <typename Family, int lanes>
MX_HD_CALL per_lane<scaled_block<Family>> searched(dialect_work w,
                                                   per_lane<scaled_block<Family>> b) {
    per_lane<bool> going;
    per_lane<scale_search> search;
    const element_errors errors(w.p);
    each([&](int lane) {
        const scaled_block<Family>& own = b[lane];
        going[lane] = own.at.size != 0 && Family::is_searched(w.p, own.amax, own.scale);
        search[lane] = scale_search(w.p, own.scale.code);
    });
    while (any(going)) {
        per_lane<search_error> error;
        per_lane<bool> close;
        per_lane<int> sign;
        each([&](int lane) {
            search_error own;
            if (going[lane]) {
                const double s = errors.scale_of(search[lane].code());
                const double inverse = 1.0 / s;
                for_own<lanes>(w, b[lane].at, lane,
                               [&](const lane_element& e) { errors.add(e.x, s, inverse, own); });
            }
            error[lane] = own;
        });
        over_block<lanes>(error, merged{});
        each([&](int lane) {
            close[lane] = going[lane] && search[lane].close(error[lane]);
            sign[lane] = 0;
        });
        if (any(close)) {
            per_lane<base::exact_sum> difference;
            each([&](int lane) {
                difference[lane] = {};
                if (!close[lane]) return;
                const double own = errors.scale_of(search[lane].code_of(error[lane]));
                const double other = errors.scale_of(search[lane].best());
                for_own<lanes>(w, b[lane].at, lane, [&](const lane_element& e) {
                    errors.add_exactly(e.x, own, 1, difference[lane]);
                    errors.add_exactly(e.x, other, -1, difference[lane]);
                });
            });
            add_up_signs<lanes>(difference, sign);
        }
        each([&](int lane) {
            if (!going[lane]) return;
            search[lane].take(error[lane], sign[lane]);
            if (!search[lane].done()) return;
            going[lane] = false;
            b[lane].scale = Family::of_code(w.p, search[lane].best());
        });
    }
    return b;
}

// Finds the scales of blocks and what else follows from their largest elements.
template <typename Family, int lanes>
MX_HD inline void choose_scales(const dialect_work& w, per_lane<scaled_block<Family>>& b,
                                per_lane<block::block_stats>& stats, per_lane<int>& exponent) {
    per_lane<magnitude_survey> seen;
    each([&](int lane) {
        magnitude_survey own;
        for_own<lanes>(w, b[lane].at, lane, [&](const lane_element& e) { own.add(e.x); });
        seen[lane] = own;
    });
    over_block<lanes>(seen, merged{});
    each([&](int lane) {
        scaled_block<Family>& own = b[lane];
        seen[lane].write(own.at.size, stats[lane]);
        const std::uint64_t first = w.s.first + own.at.row * w.s.row_stride + own.at.col;
        own.scale = Family::first_scale(w.p, seen[lane], w.s.tensor_id, first, stats[lane]);
        own.amax = stats[lane].amax;
        exponent[lane] = exponent_of(seen[lane].finite);
    });
    if constexpr (Family::selects) {
        if (w.p.select != four_over_six::none) b = selected<lanes>(w, b);
    }
    if (w.p.searches) b = searched<Family, lanes>(w, b);
    each([&](int lane) { Family::write(b[lane].scale, stats[lane]); });
}

// Elements to codes and sums.
template <typename Family, int lanes>
MX_HD inline void encode_dialect(const dialect_work& w, const dialect_recipe& r,
                                 const scaled_block<Family>& b, const std::uint8_t* raised,
                                 int lane, lane_totals<true>& sums, dialect_tally& tally) {
    std::uint8_t* const codes = r.blocks.codes;
    float* const values = r.blocks.values;
    const typename Family::encoder encoder(w.p, b.scale, b.amax, values != nullptr);
    const std::uint64_t lies = (w.s.first_block + b.at.index) * r.blocks.stride;
    for_own<lanes>(w, b.at, lane, [&](const lane_element& e) {
        const int up = raised != nullptr ? raised[e.position] : 0;
        const dialect_element q = encoder.encode(e.x, draw_of(w, e), up);
        if (codes != nullptr) codes[lies + e.position] = q.code;
        if (values != nullptr) values[lies + e.position] = q.returned;
        tally.add(w.p.element, e.x, q, &sums, r.parts);
    });
}

// Adds a lane's part of a finished block to the tally of the segment; one lane has the counts of
// all, `whole`, and the block's verdicts.
MX_HD inline void add_part(const format::element_params& f, const dialect_tally& own,
                           const element_tally& whole, bool first, block::block_stats& stats,
                           segment_tally& to) {
    if (first) {
        own.finish(f, stats);
        whole.finish(f, stats);
        cuda::add_block(to, stats);
        return;
    }
    to.poisoned += own.poisoned;
    to.dequant_overflow += own.dequant_overflow;
    to.counted_max = std::max(to.counted_max, own.counted_max);
    to.max_error = std::max(to.max_error, own.max_error);
}

// The same steps for OCP recipes.

struct ocp_tally {
    element_tally elements;
    double max_error = 0;
    bool counts = false;
};

// Merges the surveys of a block's lanes.
template <int lanes>
MX_HD inline void merge_surveys(bool with_range, per_lane<block_survey>& seen) {
    per_lane<bool> special;
    over_block<lanes>(seen, &block_survey::amax, larger{});
    each([&](int lane) { special[lane] = seen[lane].amax >= base::f32_infinity; });
    over_block<lanes>(seen, &block_survey::least,
                      [](std::uint32_t a, std::uint32_t c) { return a < c ? a : c; });
    if (any(special)) {
        over_block<lanes>(seen, &block_survey::nan, plus{});
        over_block<lanes>(seen, &block_survey::inf, plus{});
    }
    if (with_range) {
        over_block<lanes>(seen, &block_survey::low, [](float a, float c) { return c < a ? c : a; });
        over_block<lanes>(seen, &block_survey::high,
                          [](float a, float c) { return c > a ? c : a; });
    }
}

template <int lanes>
MX_HD inline void choose_scales(const ocp_work& w, per_lane<scaled_block<ocp_scales>>& b,
                                per_lane<block::block_stats>& stats, per_lane<int>& exponent) {
    per_lane<block_survey> seen;
    per_lane<std::uint32_t> ruled;
    each([&](int lane) {
        block_survey own;
        for_own<lanes>(w, b[lane].at, lane, [&](const lane_element& e) { own.add(e.x); });
        seen[lane] = own;
    });
    merge_surveys<lanes>(w.p.has_offset, seen);
    each([&](int lane) {
        ocp_scales::scale& own = b[lane].scale;
        own.counts =
            b[lane].at.size != 0 && begin_block(w.p, seen[lane], b[lane].at.size, stats[lane]);
        own.offset = base::float_from_half(stats[lane].offset);
        ruled[lane] = seen[lane].amax;
        if (!w.p.has_offset || !own.counts) return;
        ruled[lane] = w.p.range == range_kind::half ? base::bits_of(half_range(seen[lane])) : 0u;
    });
    if (w.p.has_offset && w.p.range == range_kind::max) {
        each([&](int lane) {
            const ocp_scales::scale& own = b[lane].scale;
            if (!own.counts) return;
            for_own<lanes>(w, b[lane].at, lane, [&](const lane_element& e) {
                ruled[lane] = larger{}(ruled[lane], distance_bits(e.x, own.offset));
            });
        });
        over_block<lanes>(ruled, larger{});
    }
    each([&](int lane) {
        ocp_scales::scale& own = b[lane].scale;
        own.counts = own.counts && choose_scale(w.p, seen[lane], ruled[lane], stats[lane]);
        own.exponent = scale_exponent(stats[lane]);
        exponent[lane] = own.counts ? exponent_of(seen[lane].amax) : no_exponent;
    });
}

template <int lanes, bool parts>
MX_HD inline void encode_ocp(const ocp_work& w, const block_results& to,
                             const scaled_block<ocp_scales>& b, int lane, lane_totals<parts>& sums,
                             ocp_tally& tally) {
    std::uint8_t* const codes =
        to.codes == nullptr ? nullptr : to.codes + (w.s.first_block + b.at.index) * to.stride;
    tally.counts = b.scale.counts;
    if (!b.scale.counts) {
        for_own<lanes>(w, b.at, lane, [&](const lane_element& e) {
            if (codes != nullptr) codes[e.position] = w.p.poisoned_code;
        });
        return;
    }
    const element_encoder encoder(w.p, b.scale.exponent, b.scale.offset);
    for_own<lanes>(w, b.at, lane, [&](const lane_element& e) {
        const auto one = encoder.encode(e.x, draw_of(w, e), tally.elements);
        if (codes != nullptr) codes[e.position] = one.code;
        const block::exact_value d{b.scale.offset, one.product};
        tally.max_error = larger{}(tally.max_error, std::fabs(error_of(e.x, d.offset, d.product)));
        sums.add(e.x, d, one.part, parts);
    });
}

MX_HD inline void add_part(const format::element_params& f, const ocp_tally& own,
                           const element_tally& whole, bool first, block::block_stats& stats,
                           segment_tally& to) {
    if (!first) {
        to.max_error = larger{}(to.max_error, own.max_error);
        return;
    }
    if (own.counts) whole.finish(f, stats);
    stats.sum.max_error = own.max_error;
    cuda::add_block(to, stats);
}

template <typename Family>
using tally_under = std::conditional_t<is_ocp<Family>, ocp_tally, dialect_tally>;

}  // namespace detail

/// Writes the result of bumps_of_row for the grid rows of a segment with blocks of one row to where
/// the codes of each row's first block would be: every `step`th position from `begin` on.
MX_HD inline void raise_exponents(const launch& l, const device_segment& s, std::uint32_t begin,
                                  std::uint32_t step) {
    const std::uint32_t across = (s.cols + s.block_cols - 1) / s.block_cols;
    for (std::uint32_t row = 0; row < s.rows; ++row) {
        for (std::uint32_t i = begin; i < s.block_cols; i += step) {
            std::uint32_t largest = 0;
            for (std::uint64_t col = i; col < s.cols; col += s.block_cols) {
                const float x = detail::load_value(l.values, s.at + row * l.values.stride + col);
                largest = std::max(largest, base::bits_of(x) & base::f32_magnitude_mask);
            }
            l.raised[(s.first_block + std::uint64_t{row} * across) * l.stride + i] =
                raises_exponent(largest) ? 1 : 0;
        }
    }
}

/// Calls run(lanes), an integral_constant: the lanes to take for a block of `size` elements.
/// Exchanges between the lanes of a block cost as much as a few elements of each.
template <typename Run>
void with_lanes(std::uint64_t size, Run&& run) {
    if (size <= 32) {
        run(std::integral_constant<int, 1>{});
    } else if (size <= 1024) {
        run(std::integral_constant<int, 8>{});
    } else {
        run(std::integral_constant<int, lane_count>{});
    }
}

/// Quantizes a segment with the same bytes as the reference, `lanes` lanes to a block, with the
/// parts of the squared error if `parts` is set and, unless it is an OCP recipe, it asks for them;
/// adds the sums to those of the recipe. Called by all lanes of a warp; one of them writes `out`.
/// `p` has the recipe's parameters. With `marks`, only the marked blocks, which it adds to `out`,
/// where all elements and blocks are counted already.
template <typename Family, int lanes, bool parts = true, typename Recipe, typename Params>
MX_HD inline void quantize_by_lanes(const launch& l, const Recipe& r, const Params& p,
                                    const device_segment& s, segment_tally& out,
                                    const std::uint16_t* marks) {
    using namespace detail;
    const segment_work<Params> w{p, s, l.values};
    constexpr std::uint32_t at_once = lane_count / lanes, in_word = blocks_per_mark;
    constexpr std::uint32_t all = at_once == 32 ? ~0u : (1u << at_once % 32) - 1u;
    const auto round = [&](std::uint32_t first, auto& tally, auto& sums) {
        std::uint32_t wanted = ~0u;
        if (marks != nullptr) {
            wanted = static_cast<std::uint32_t>(marks[first / in_word]) >> first % in_word;
            if (at_once > in_word && first + in_word < blocks_of(s))
                wanted |= static_cast<std::uint32_t>(marks[first / in_word + 1]) << in_word;
            if ((wanted & all) == 0) return;
        }
        per_lane<scaled_block<Family>> b;
        per_lane<block::block_stats> stats;
        per_lane<int> exponent;
        per_lane<tally_under<Family>> counted;
        per_lane<element_tally> whole;
        each([&](int lane) {
            b[lane] = {};
            const auto which = static_cast<std::uint32_t>(lane / lanes);
            b[lane].at = window_of(w.s, first + which);
            if ((wanted >> which & 1u) == 0) b[lane].at.size = 0;
            stats[lane] = {};
            counted[lane] = {};
        });
        if constexpr (is_ocp<Family>) {
            choose_scales<lanes>(w, b, stats, exponent);
        } else {
            choose_scales<Family, lanes>(w, b, stats, exponent);
        }
        aim(sums, exponent);
        each([&](int lane) {
            if constexpr (is_ocp<Family>) {
                encode_ocp<lanes, parts>(w, r.blocks, b[lane], lane, sums[lane], counted[lane]);
            } else {
                const lane_window& at = b[lane].at;
                // Of the first block in the row: these blocks have one row.
                const std::uint64_t row = w.s.first_block + at.index - at.col / w.s.block_cols;
                encode_dialect<Family, lanes>(w, r, b[lane],
                                              p.bumps ? l.raised + row * l.stride : nullptr, lane,
                                              sums[lane], counted[lane]);
            }
            whole[lane] = counted[lane].elements;
        });
        over_block<lanes>(whole, merged{});
        each([&](int lane) {
            const lane_window& at = b[lane].at;
            if (at.size == 0) return;
            const bool one = lane % lanes == 0;
            add_part(p.element, counted[lane], whole[lane], one, stats[lane], tally[lane]);
            if (one) r.blocks.put(w.s.first_block + at.index, stats[lane]);
        });
    };
    for_rounds<parts>(w.s, at_once, *r.totals, out, marks != nullptr, round);
}

}  // namespace mx::codec::cuda
