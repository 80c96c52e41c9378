// SPDX-License-Identifier: Apache-2.0
// Segments whose blocks are short pieces of rows, under the common recipe (row_grid.hpp), when
// at most codes are wanted per block: the figures of segment_body.hpp with a lane for a block.
//
// Sixteen lanes work on a segment. Lane k has the blocks k, k + 16, k + 32, ... and with them
// segment lane k: all sums of determinism.md down to the last four levels are additions inside a
// lane. A block is read once. Where float32 does not do, the block takes the steps of the
// reference, and its sums their place among the others.
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

// The elements of a block under the scale that `out` has, by the reference's steps. One array of
// terms at a time: what lies in memory there, every thread of the device has room for.
template <typename T>
MX_HD void add_terms(const plain_params& p, const device_values& values, std::uint64_t at,
                     std::uint8_t* codes, block::block_stats& out) {
    const int exponent = scale_exponent(out);
    const std::uint32_t size = out.count.elements;
    const element_encoder encoder(p, exponent);
    element_tally tally;
    std::uint8_t code[chunk_size];
    for (std::uint32_t i = 0; i < size; ++i) {
        code[i] = encoder.encode(load_value(values, at + i), 0, tally).code;
        if (codes != nullptr) codes[i] = code[i];
    }
    tally.finish(p.element, out);
    const auto term = [&](std::uint32_t i) {
        const float x = load_value(values, at + i);
        const float q = p.value[code[i]];
        if constexpr (std::is_same_v<T, double>) {
            return term_in_x(x, 0.0f, base::exact_pow2(exponent), q);
        } else {
            return term_in_scale(x, base::exact_pow2f(-exponent), q);
        }
    };
    const auto sum_of = [&](auto value) {
        decltype(value(element_term<T>{})) terms[chunk_size] = {};
        for (std::uint32_t i = 0; i < size; ++i) terms[i] = value(term(i));
        return static_cast<double>(sum_chunk(terms));
    };
    using term_type = element_term<T>;
    out.sum.error2 = sum_of([](const term_type& t) { return t.error2(); });
    out.sum.x2 = sum_of([](const term_type& t) { return t.x2(); });
    out.sum.xd = sum_of([](const term_type& t) { return t.xd(); });
    out.sum.d2 = sum_of([](const term_type& t) { return t.d2(); });
    out.sum.error = sum_of([](const term_type& t) { return t.error(); });
    for (std::uint32_t i = 0; i < size; ++i) {
        const T e = term(i).e;
        out.sum.max_error = larger{}(out.sum.max_error, static_cast<double>(e < 0 ? -e : e));
    }
}

// Everything of a block, and its codes where they are wanted.
template <typename Dummy = void>
MX_HD MX_OUT_OF_LINE void block_by_steps(const plain_params& p, device_values values,
                                         std::uint64_t at, std::uint32_t size, std::uint8_t* codes,
                                         block::block_stats& out) {
    block_survey seen;
    for (std::uint32_t i = 0; i < size; ++i) seen.add(load_value(values, at + i));
    out = {};
    if (!begin_block(p, seen, size, out) || !choose_scale(p, seen, seen.amax, out)) {
        for (std::uint32_t i = 0; codes != nullptr && i < size; ++i) codes[i] = p.poisoned_code;
        return;
    }
    if (sums_in_x(p, seen, scale_exponent(out))) {
        add_terms<double>(p, values, at, codes, out);
    } else {
        add_terms<float>(p, values, at, codes, out);
        scale_sums(out.sum, out.part, base::exact_pow2(scale_exponent(out)));
    }
}

// The sum of errors in the units of the scale, in double throughout.
template <typename Dummy = void>
MX_HD MX_OUT_OF_LINE double error_by_steps(const plain_params& p, device_values values,
                                           std::uint64_t at, std::uint32_t size, float reciprocal) {
    const row_grid g = row_grid_of(p);
    double error[chunk_size] = {};
    for (std::uint32_t i = 0; i < size; ++i) {
        const float y = load_value(values, at + i) * reciprocal;
        error[i] = static_cast<double>(rounded(g, y) - y);
    }
    return sum_chunk(error);
}

template <typename Error>
struct row_sums {
    float error2, x2, xd, d2;
    Error error;
};

// a * b + c * d as two products and a sum, each rounded.
template <bool exact_products>
MX_HD inline float sum_of_products(float a, float b, float c, float d) {
#if defined(__CUDA_ARCH__)
    if constexpr (exact_products) return __fmaf_rn(a, b, c * d);
#endif
    return a * b + c * d;
}

// The additions of a chunk from distance `distance` up to 16, at position `i`; the largest error on
// the way. A block of bf16 adds its errors in float32, which its caller finds to be exact, or not.
template <typename Values, typename Converter>
class row_tree {
  public:
    using error_type = std::conditional_t<Values::exact_products, float, double>;
    using sums = row_sums<error_type>;

    MX_HD row_tree(const row_grid& g, const Converter& convert, const Values& y, float most)
        : y_(y), q_(g, convert, y, base::bits_of(most)) {}

    template <int distance = 1, int i = 0>
    MX_HD sums sum() {
        if constexpr (distance < chunk_size / 2) {
            const sums a = sum<2 * distance, i>();
            const sums b = sum<2 * distance, i + distance>();
            return {a.error2 + b.error2, a.x2 + b.x2, a.xd + b.xd, a.d2 + b.d2, a.error + b.error};
        } else {
            constexpr bool exact = Values::exact_products;
            const float y = y_[i];
            const float z = y_[i + distance];
            const value_pair q = q_(i);
            const float e = q.first - y;
            const float f = q.second - z;
            most_ = larger_of(most_, larger_of(std::fabs(e), std::fabs(f)));
            return {sum_of_products<exact>(e, e, f, f), sum_of_products<exact>(y, y, z, z),
                    sum_of_products<exact>(y, q.first, z, q.second),
                    sum_of_products<exact>(q.first, q.first, q.second, q.second),
                    static_cast<error_type>(e) + static_cast<error_type>(f)};
        }
    }
    MX_HD float most() const { return most_; }
    MX_HD value_pair value(int i) const { return q_(i); }

  private:
    const Values& y_;
    rounded_block<Values, Converter> q_;
    float most_ = 0;
};

inline constexpr float least_float_term = 0x1p-60f;  // see sums_in_x

// Counts and verdicts of a block whose magnitudes |y| lie between `least`, the smallest that is not
// zero, and `most`. Whether an end of the range reaches a bound says whether to count.
template <typename Values>
MX_HD inline void count_row(const row_grid& g, const Values& y, float least, float most,
                            bool has_zeros, std::uint32_t size, lane_sums& sums) {
    std::uint32_t nonzero = size, top = 0, underflow = 0;
    if (has_zeros) {
        std::uint32_t count[1];
        y.reaching({base::bits_of(least_float_term)}, count);
        nonzero = count[0];
    }
    if (base::bits_of(most) >= g.top) {
        std::uint32_t count[3];
        y.reaching({g.top, g.overflow, g.clamp}, count);
        top = count[0];
        sums.top_code += top;
        sums.overflow += count[1];
        sums.clamp += count[2];
    }
    if (base::bits_of(least) < g.normal) {
        std::uint32_t count[2];
        y.reaching({g.kept, g.normal}, count);
        underflow = nonzero - count[0];
        sums.underflow += underflow;
        sums.subnormal += count[0] - count[1];
    }
    sums.nonzero += nonzero;
    sums.zero += most == 0 ? 1u : 0u;
    if (nonzero < 2) return;
    const float low = rounded(g, least);
    sums.eligible += 1;
    sums.collapsed += low == rounded(g, most) && low != 0 ? 1u : 0u;
    sums.saturated += top == nonzero ? 1u : 0u;
    sums.dead += underflow == nonzero ? 1u : 0u;
}

// The codes of a block that was scaled, sixteen at a time where there are 32.
template <typename Values, typename Tree>
MX_HD inline void write_codes(const row_grid& g, const Values& y, const Tree& tree,
                              std::uint32_t size, std::uint8_t* codes) {
    constexpr int half = chunk_size / 2;
    sixteen_bytes out[2] = {};
    MX_UNROLL
    for (int i = 0; i < half; ++i) {
        const value_pair q = tree.value(i);
        out[0].word[i / 4] |= code_of(g, q.first, y[i]) << (i % 4 * 8);
        out[1].word[i / 4] |= code_of(g, q.second, y[i + half]) << (i % 4 * 8);
    }
    if (size == chunk_size) {
        store_sixteen(codes, out[0]);
        store_sixteen(codes + half, out[1]);
        return;
    }
    MX_UNROLL
    for (int i = 0; i < chunk_size; ++i) {
        if (i >= static_cast<int>(size)) continue;
        codes[i] = static_cast<std::uint8_t>(out[i / half].word[i % half / 4] >> (i % 4 * 8));
    }
}

// A block, as it is added to its lane, and as it is written where codes are wanted.
template <bool coded, typename Values, typename Converter>
MX_HD inline void add_row(const plain_params& p, const row_grid& g, const Converter& convert,
                          const device_values& values, std::uint64_t at, std::uint32_t size,
                          const block_results& to, std::uint64_t index, lane_sums& sums) {
    std::uint8_t* const codes = coded ? to.codes + index * to.stride : nullptr;
    Values x;
    x.load(values, at, size);
    magnitude_range r = x.range();
    if (size < chunk_size) r.least = 0;  // filled with zeros
    const std::uint32_t least = r.least != 0 ? r.least : x.least_nonzero();

    const std::uint32_t exponent = (r.most + g.rule_step) >> 23;
    int code = static_cast<int>(exponent) - g.rule_base;
    if (r.most == 0) code = format::e8m0_bias;
    const float reciprocal = base::float_from_bits(static_cast<std::uint32_t>(254 - code) << 23);
    const float least_y = base::float_from_bits(least) * reciprocal;
    const float most_y = base::float_from_bits(r.most) * reciprocal;
    // NaN, Inf, subnormals, a scale at an end of its range, terms that float32 loses.
    const bool plain =
        r.most == 0 || (least >= 0x00800000u && r.most < base::f32_infinity && exponent < 255 &&
                        code >= 1 && code <= 253 && least_y >= least_float_term && most_y < g.far);
    if (!plain) {
        block::block_stats stats;
        block_by_steps(p, values, at, size, codes, stats);
        block::each_sum(block::plus{}, sums, stats.sum);
        add_counts(stats, sums);
        if constexpr (coded) to.put(index, stats);
        return;
    }
    x.scale(reciprocal);
    row_tree<Values, Converter> tree(g, convert, x, most_y);
    const auto sum = tree.sum();
    auto error = static_cast<double>(sum.error);
    if constexpr (Values::exact_products) {
        // Errors are multiples of the last place of the smallest y; while 32 of them stay below
        // 2^24 places, no addition rounded.
        const float place = least_y * base::exact_pow2f(24 - 5 - Values::fraction_bits - 1);
        if (r.most != 0 && tree.most() > place) {
            error = error_by_steps(p, values, at, size, reciprocal);
        }
    }
    const double s = base::exact_pow2(code - format::e8m0_bias);
    const double s2 = s * s;
    sums.error2 += static_cast<double>(sum.error2) * s2;
    sums.x2 += static_cast<double>(sum.x2) * s2;
    sums.xd += static_cast<double>(sum.xd) * s2;
    sums.d2 += static_cast<double>(sum.d2) * s2;
    sums.error += error * s;
    sums.max_error = larger{}(sums.max_error, static_cast<double>(tree.most()) * s);
    sums.counted_max = larger{}(sums.counted_max, r.most);
    count_row(g, x, least_y, most_y, r.least == 0, size, sums);
    if constexpr (coded) {
        write_codes(g, x, tree, size, codes);
        // A block of zeros has the least scale under every rule.
        to.scale_code[index] = static_cast<std::uint8_t>(r.most == 0 ? 0 : code);
        to.offset[index] = 0;
        to.amax[index] = to.x_max[index] = r.most;
        to.x_min[index] = least;
    }
}

// The blocks of lane k.
template <bool coded, typename Values, typename Converter>
MX_HD inline void add_rows(const plain_params& p, const row_grid& g, const Converter& convert,
                           const device_segment& s, const device_values& values,
                           const block_results& to, std::uint32_t k, lane_sums& sums) {
    const std::uint32_t across = (s.cols + s.block_cols - 1) / s.block_cols;
    std::uint32_t row = k / across;
    std::uint32_t col = k - row * across;
    while (row < s.rows) {
        const std::uint32_t first = col * s.block_cols;
        add_row<coded, Values>(p, g, convert, values, s.at + row * values.stride + first,
                               std::min(s.block_cols, s.cols - first), to,
                               s.first_block + std::uint64_t{row} * across + col, sums);
        col += lanes_per_segment;
        while (col >= across) {
            col -= across;
            ++row;
        }
    }
}

template <auto... members, typename Combine>
MX_HD inline void over_segment(per_lane<lane_sums>& sums, Combine combine) {
    for (int mask = lanes_per_segment / 2; mask > 0; mask /= 2) {
        exchange_all<members...>(sums, mask, combine);
    }
}

MX_HD inline void finish_rows(const device_segment* segments, std::uint32_t count,
                              per_lane<lane_sums>& sums, block::segment_stats* out) {
    using s_t = lane_sums;
    over_segment<&s_t::error2, &s_t::x2, &s_t::xd, &s_t::d2, &s_t::error>(sums, add{});
    over_segment<&s_t::max_error, &s_t::counted_max>(sums, larger{});
    over_segment<&s_t::nan, &s_t::inf, &s_t::poisoned, &s_t::nonzero, &s_t::overflow, &s_t::clamp,
                 &s_t::top_code, &s_t::underflow, &s_t::subnormal, &s_t::zero, &s_t::eligible,
                 &s_t::collapsed, &s_t::saturated, &s_t::dead>(sums, add{});
    each([&](int lane) {
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        if (lane % lanes_per_segment != 0 || which >= count) return;
        const device_segment& of = segments[which];
        lane_sums& s = sums[lane];
        s.elements = of.rows * of.cols;
        s.blocks = of.rows * ((of.cols + of.block_cols - 1) / of.block_cols);
        write_sums(s, out[which]);
    });
}

}  // namespace detail

/// What scalar::quantize makes of one segment, or of two neighbours in the list, under a recipe
/// that takes_rows() approves, byte for byte; with `coded` also codes and the facts of scales,
/// which `to` has room for. Called by all lanes of a warp. Values is the kind of block for the
/// stored type: bf16_block for bf16, float_block for all.
template <bool coded, typename Values, typename Converter>
MX_HD inline void quantize_rows(const plain_params& p, const device_segment* segments,
                                std::uint32_t count, const device_values& values,
                                const block_results& to, block::segment_stats* out) {
    const row_grid g = row_grid_of(p);
    const Converter convert(p);
    per_lane<detail::lane_sums> sums;
    each([&](int lane) {
        sums[lane] = {};
        const auto which = static_cast<std::uint32_t>(lane / lanes_per_segment);
        if (which >= count) return;
        detail::add_rows<coded, Values>(p, g, convert, segments[which], values, to,
                                        static_cast<std::uint32_t>(lane % lanes_per_segment),
                                        sums[lane]);
    });
    detail::finish_rows(segments, count, sums, out);
}

}  // namespace mx::codec::cuda
