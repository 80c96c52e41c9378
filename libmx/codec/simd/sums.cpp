// SPDX-License-Identifier: Apache-2.0
// Exact sums over the blocks of a run. Compiled once per instruction set.
//
// A sum of doubles is exact while its terms are multiples of one unit and stay below 2^53 units.
// Terms that need more bits are split: adding and subtracting an anchor 1.5 * 2^k leaves the
// multiples of 2^(k-52); the remainder goes to a second sum (or a third). Elements are added in
// pieces of 16 or 32; the sums of the pieces are multiplied by their scales and added in the same
// manner.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/sums.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

// For terms below 2^exponent, the next sum takes the part below 2^(exponent - 52).
HWY_INLINE doubles anchor(int exponent) {
    return hn::Set(double_tag(), 1.5 * base::exact_pow2(exponent));
}
HWY_INLINE doubles high_part(doubles v, doubles anchor) {
    return hn::Sub(hn::Add(v, anchor), anchor);
}

// A sum in one, two or three doubles.
template <int levels>
struct split_sum {
    doubles high, low, least;

    HWY_INLINE split_sum() : high(hn::Zero(double_tag())), low(high), least(high) {}
    HWY_INLINE void add(doubles v, doubles at, doubles at_low) {
        if constexpr (levels == 1) {
            high = hn::Add(high, v);
            return;
        }
        const doubles top = high_part(v, at);
        high = hn::Add(high, top);
        const doubles rest = hn::Sub(v, top);
        if constexpr (levels == 2) {
            low = hn::Add(low, rest);
        } else {
            const doubles middle = high_part(rest, at_low);
            low = hn::Add(low, middle);
            least = hn::Add(least, hn::Sub(rest, middle));
        }
    }
};

// The sums of a batch of pieces, before they are stored.
template <std::size_t count>
struct batch_sums {
    HWY_ALIGN double of[count][batch * double_lanes];

    HWY_INLINE void put(std::size_t which, std::size_t piece, doubles v) {
        hn::Store(v, double_tag(), of[which] + piece * double_lanes);
    }
    HWY_INLINE void clear(std::size_t piece) {
        for (std::size_t s = 0; s < count; ++s) put(s, piece, hn::Zero(double_tag()));
    }
    HWY_INLINE void fold(std::size_t which, double* to) const { fold_double_batch(of[which], to); }
};

// Steps through the pieces of a run and their blocks.
class block_walk {
  public:
    explicit block_walk(std::size_t per_block) : per_block_(per_block), left_(per_block) {}
    std::size_t next() {
        if (left_ == 0) {
            ++block_;
            left_ = per_block_;
        }
        --left_;
        return block_;
    }

  private:
    std::size_t per_block_, left_, block_ = 0;
};

// Exponent of a float32; for subnormals that of the smallest normal number.
HWY_INLINE int exponent_of(std::uint32_t magnitude) {
    return std::max(static_cast<int>(magnitude >> 23), 1) - 127;
}

// Binades between the largest and the smallest non-zero magnitude of a block.
HWY_INLINE int span_of(const block_run& run, std::size_t block) {
    const std::uint32_t amax = run.amax.data()[block];
    return amax == 0 ? 0 : exponent_of(amax) - exponent_of(run.amin.data()[block]);
}

// The smallest element that three sums of x^2 support in a block with exponent e: see sum_values.
HWY_INLINE float least_summed(const block_run& run, int e) {
    return base::exact_pow2f(std::clamp(e - (72 - run.precision), -149, 127));
}

// Sums of x and x^2 of elements within the range below the largest that `levels` sums support (see
// sum_values); with three levels, smaller ones go to block_run::small. |x| < 2^(e+1).
template <std::size_t chunk, int levels>
HWY_ATTR void sum_pieces(block_run& run) {
    const float_tag df;
    constexpr int of_x = levels == 3 ? 2 : 1;
    const std::size_t per_block = run.stride / chunk;
    const std::size_t pieces = run.blocks * per_block;
    batch_sums<of_x + levels> sums;
    block_walk walk(per_block);
    for (std::size_t first = 0; first < pieces; first += batch) {
        for (std::size_t i = 0; i < batch; ++i) {
            const std::size_t block = walk.next();
            if (block >= run.blocks || run.amax.data()[block] >= base::f32_infinity) {
                sums.clear(i);
                continue;
            }
            const int e = exponent_of(run.amax.data()[block]);
            const doubles at_x = anchor(e + 6);
            const doubles at = anchor(2 * e + 7);
            const doubles at_low = anchor(2 * e - 41);
            split_sum<of_x> x;
            split_sum<levels> x2;
            const float* const from = run.x + (first + i) * chunk;
            const floats least = hn::Set(df, levels == 3 ? least_summed(run, e) : 0.0f);
            for (std::size_t v = 0; v < chunk; v += float_lanes) {
                floats both = hn::LoadU(df, from + v);
                if constexpr (levels == 3) {
                    const auto few = hn::Lt(hn::Abs(both), least);
                    if (HWY_UNLIKELY(
                            !hn::AllFalse(df, hn::AndNot(hn::Eq(both, hn::Zero(df)), few)))) {
                        for (std::size_t k = 0; k < float_lanes; ++k) {
                            const float x = from[v + k];
                            if (x != 0 && std::abs(x) < least_summed(run, e)) {
                                run.small[run.smalls++] = {static_cast<std::uint32_t>(block), x};
                            }
                        }
                        both = hn::IfThenZeroElse(few, both);
                    }
                }
                const auto add = [&](doubles one) HWY_ATTR {
                    x.add(one, at_x, at_x);
                    x2.add(hn::Mul(one, one), at, at_low);
                };
                add(lower(both));
                add(upper(both));
            }
            sums.put(0, i, x.high);
            sums.put(1, i, x2.high);
            if constexpr (levels >= 2) sums.put(2, i, x2.low);
            if constexpr (levels == 3) {
                sums.put(3, i, x2.least);
                sums.put(4, i, x.low);
            }
        }
        sums.fold(0, run.sum_x.data() + first);
        sums.fold(1, run.sum_x2.data() + first);
        if constexpr (levels >= 2) sums.fold(2, run.sum_x2_low.data() + first);
        if constexpr (levels == 3) {
            sums.fold(3, run.sum_x2_least.data() + first);
            sums.fold(4, run.sum_x_low.data() + first);
        }
    }
}

// The larger magnitude; the sign is dropped at the end at the latest.
HWY_INLINE doubles to_compare(doubles error) {
#if HWY_TARGET == HWY_AVX3
    return error;
#else
    return hn::Abs(error);
#endif
}
HWY_INLINE doubles larger(doubles a, doubles b) {
#if HWY_TARGET == HWY_AVX3
    return doubles{_mm512_range_pd(a.raw, b.raw, 0x0b)};
#else
    return hn::Max(a, b);
#endif
}

// q, q^2 and x q. |q| < 2^most. Without an offset |x q| < 2^(e + 3 + 2 most), where 2^e is the
// binade of the scale; with one |x| < 2^(e + 1) and |x q| < 2^(e + 1 + most), where 2^e is that of
// the largest x. 32 terms add 5.
template <std::size_t chunk, int of_q2, int of_xq, bool centred>
HWY_ATTR double multiply_pieces(const product_plan& plan, const block_run& run, product_sums& to) {
    const float_tag df;
    const double_tag dd;
    const std::size_t per_block = run.stride / chunk;
    const std::size_t pieces = run.blocks * per_block;
    const int most = plan.range.most;
    const doubles at_q2 = anchor(2 * most + 5);
    batch_sums<1 + of_q2 + of_xq> sums;
    doubles max_error = hn::Zero(dd);
    block_walk walk(per_block);
    for (std::size_t first = 0; first < pieces; first += batch) {
        for (std::size_t i = 0; i < batch; ++i) {
            const std::size_t block = walk.next();
            if (block >= run.blocks || plan.slow[block] != 0) {
                sums.clear(i);
                continue;
            }
            const double scale = plan.scale[block];
            doubles at_xq = hn::Zero(dd);
            std::conditional_t<centred, centred_error, plain_error> error;
            error.scale = hn::Set(dd, scale);
            if constexpr (centred) {
                error.offset = hn::Set(dd, static_cast<double>(plan.offset[block]));
                at_xq = anchor(exponent_of(run.amax.data()[block]) + most + 6);
            } else if constexpr (of_xq == 2) {
                const int e = static_cast<int>(base::bits_of(scale) >> 52) - 1023;
                at_xq = anchor(std::max(e + 2 * most + 8, -900));
            }
            split_sum<1> q;
            split_sum<of_q2> q2;
            split_sum<of_xq> xq;
            const std::size_t at = (first + i) * chunk;
            for (std::size_t v = at; v < at + chunk; v += float_lanes) {
                const floats both_x = hn::LoadU(df, run.x + v);
                const floats both_q = hn::Load(df, plan.q + v);
                const auto add = [&](doubles x, doubles code) HWY_ATTR {
                    q.add(code, at_q2, at_q2);
                    q2.add(hn::Mul(code, code), at_q2, at_q2);
                    xq.add(hn::Mul(x, code), at_xq, at_xq);
                    max_error = larger(max_error, to_compare(error.of(x, code)));
                };
                add(lower(both_x), lower(both_q));
                add(upper(both_x), upper(both_q));
            }
            sums.put(0, i, q.high);
            sums.put(1, i, q2.high);
            sums.put(2, i, xq.high);
            if constexpr (of_xq == 2) sums.put(3, i, xq.low);
            if constexpr (of_q2 == 2) sums.put(4, i, q2.low);
        }
        sums.fold(0, to.q.data() + first);
        sums.fold(1, to.q2.data() + first);
        sums.fold(2, to.xq.data() + first);
        if constexpr (of_xq == 2) sums.fold(3, to.xq_low.data() + first);
        if constexpr (of_q2 == 2) sums.fold(4, to.q2_low.data() + first);
    }
    return hn::GetLane(hn::MaxOfLanes(dd, hn::Abs(max_error)));
}

template <std::size_t chunk>
double multiply(const product_plan& plan, const block_run& run, product_sums& to) {
    if (plan.offset != nullptr) {
        return to.split_q2 ? multiply_pieces<chunk, 2, 2, true>(plan, run, to)
                           : multiply_pieces<chunk, 1, 2, true>(plan, run, to);
    }
    if (to.split_q2) return multiply_pieces<chunk, 2, 2, false>(plan, run, to);
    return to.split_xq ? multiply_pieces<chunk, 1, 2, false>(plan, run, to)
                       : multiply_pieces<chunk, 1, 1, false>(plan, run, to);
}

// Adds `count` terms (a multiple of a vector, at most 4096) and overwrites them.
HWY_ATTR void add_few(double* terms, std::size_t count, base::exact_sum& to) {
    const double_tag dd;
    constexpr int bits = 40;  // per level; a sum of 4096 terms fits a double
    doubles most = hn::Zero(dd);
    for (std::size_t i = 0; i < count; i += double_lanes) {
        most = hn::Max(most, hn::Abs(hn::Load(dd, terms + i)));
    }
    const double largest = hn::GetLane(hn::MaxOfLanes(dd, most));
    if (largest == 0) return;
    int exponent = static_cast<int>(base::bits_of(largest) >> 52) - 1023;
    while (true) {
        const doubles at = anchor(exponent + 53 - bits);
        doubles sum = hn::Zero(dd);
        doubles left = hn::Zero(dd);
        for (std::size_t i = 0; i < count; i += double_lanes) {
            const doubles term = hn::Load(dd, terms + i);
            const doubles top = high_part(term, at);
            sum = hn::Add(sum, top);
            const doubles rest = hn::Sub(term, top);
            left = hn::Or(left, rest);
            hn::Store(rest, dd, terms + i);
        }
        to.add(hn::GetLane(hn::SumOfLanes(dd, sum)));
        if (hn::AllTrue(dd, hn::Eq(left, hn::Zero(dd)))) return;
        exponent -= bits;
    }
}

// Sums over whole runs, in lanes.

// A sum of products in each lane. One double: every partial sum is exact. Two: the first begins at
// an anchor and keeps multiples of its unit, the second gets what additions cut off, exactly: a sum
// of two doubles differs from its rounding by a double, and so does one with a product here, by the
// bounds of lane_levels.
template <int levels>
struct lane_sum {
    doubles start, high, low;

    explicit HWY_INLINE lane_sum(doubles from)
        : start(levels == 2 ? from : hn::Zero(double_tag())),
          high(start),
          low(hn::Zero(double_tag())) {}

    HWY_INLINE void add(doubles a, doubles b) {
#if HWY_NATIVE_FMA
        const doubles next = hn::MulAdd(a, b, high);
        if constexpr (levels == 2) low = hn::Add(low, hn::MulSub(a, b, hn::Sub(next, high)));
#else
        const doubles product = hn::Mul(a, b);
        const doubles next = hn::Add(high, product);
        if constexpr (levels == 2) low = hn::Add(low, hn::Sub(product, hn::Sub(next, high)));
#endif
        high = next;
    }
    // The terms of the sum.
    HWY_INLINE double* store(double* to) const {
        hn::Store(hn::Sub(high, start), double_tag(), to);
        if constexpr (levels == 1) return to + double_lanes;
        hn::Store(low, double_tag(), to + double_lanes);
        return to + 2 * double_lanes;
    }
};

// What bounds a sum in a lane: 2^count terms below 2^most, multiples of 2^unit, each a product of
// `bits` bits at most.
struct lane_bounds {
    int most, unit, count, bits;

    // The anchor of two doubles: sums stay below half of it, and so in its binade.
    int start() const { return most + count + 1; }
    // Doubles per lane that make the sum exact; 0: more than two.
    int levels() const {
        constexpr int mantissa = 53;
        if (!HWY_NATIVE_FMA && bits > mantissa) return 0;
        if (most + count - unit <= mantissa) return 1;
        // A rest is at most half of the anchor's unit, 2^(start - 52).
        return start() - mantissa + count - unit <= mantissa ? 2 : 0;
    }
};

// Elements of a run that a lane adds up at most, as a power of two.
HWY_INLINE int lane_count(const block_run& run) {
    const std::size_t each = run.blocks * run.stride / (2 * double_lanes);
    return static_cast<int>(std::bit_width(each - 1));
}

// The lanes of float32 elements from `from` on, in two halves.
HWY_INLINE doubles half_at(const float* from, std::size_t half) {
    return hn::PromoteTo(double_tag(), hn::LoadU(half_tag(), from + half * double_lanes));
}

HWY_ATTR void find_exponents(block_run& run) {
    const bits_tag du;
    const int_tag di;
    const ints inf = hn::Set(di, static_cast<std::int32_t>(base::f32_infinity));
    ints most = hn::Zero(di);
    ints least = inf;
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        const ints amax = hn::BitCast(di, hn::Load(du, run.amax.data() + b));
        const ints amin = hn::BitCast(di, hn::Load(du, run.amin.data() + b));
        most = hn::Max(most, hn::IfThenElseZero(hn::Lt(amax, inf), amax));
        least = hn::Min(least, hn::IfThenElse(hn::Eq(amin, hn::Zero(di)), inf, amin));
    }
    run.exponent_most =
        exponent_of(static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(di, most))));
    const int lowest =
        exponent_of(static_cast<std::uint32_t>(hn::GetLane(hn::MinOfLanes(di, least))));
    run.exponent_least = std::min(lowest, run.exponent_most);
}

template <int levels>
HWY_ATTR void sum_lanes(block_run& run, const lane_bounds& squares) {
    const doubles zero = hn::Zero(double_tag());
    const doubles start = anchor(squares.start());
    doubles x[2] = {zero, zero};
    lane_sum<levels> x2[2] = {lane_sum<levels>(start), lane_sum<levels>(start)};
    for (std::size_t block = 0; block < run.blocks; ++block) {
        if (run.amax.data()[block] >= base::f32_infinity) continue;
        const float* const from = run.x + block * run.stride;
        for (std::size_t v = 0; v < run.stride; v += float_lanes) {
            const doubles low = half_at(from + v, 0);
            const doubles high = half_at(from + v, 1);
            x[0] = hn::Add(x[0], low);
            x[1] = hn::Add(x[1], high);
            x2[0].add(low, low);
            x2[1].add(high, high);
        }
    }
    hn::Store(x[0], double_tag(), run.terms_x.data());
    hn::Store(x[1], double_tag(), run.terms_x.data() + double_lanes);
    x2[1].store(x2[0].store(run.terms_x2.data()));
}

// What the scales u of a run come to, S = u * outer.
struct scale_range {
    int most = 0, least = 0;  // exponents of those other than zero
    int bits = 1;             // significant ones
    bool any = false;         // other than zero
};

// Scales without the outer factor, where every one is a product with it; else as they are.
HWY_ATTR double share_outer(const product_plan& plan, std::size_t blocks, double* to) {
    const double_tag dd;
    if (plan.outer == 1) {
        std::copy_n(plan.scale, blocks + batch, to);
        return 1;
    }
    const doubles outer = hn::Set(dd, plan.outer);
    auto same = hn::Eq(outer, outer);
    for (std::size_t b = 0; b < blocks; b += double_lanes) {
        const doubles scale = hn::Load(dd, plan.scale + b);
        const doubles u = hn::Div(scale, outer);
        const product again = two_product(u, outer);
        hn::Store(u, dd, to + b);
        same = hn::And(same, hn::Eq(again.high, scale));
        same = hn::And(same, hn::Eq(again.low, hn::Zero(dd)));
    }
    if (hn::AllTrue(dd, same)) return plan.outer;
    std::copy_n(plan.scale, blocks + batch, to);
    return 1;
}

HWY_ATTR scale_range range_of_scales(const double* scale, std::size_t blocks) {
    const double_tag dd;
    const doubles none = hn::Set(dd, 0x1p1000);
    const doubles zero = hn::Zero(dd);
    doubles most = zero;
    doubles least = none;
    doubles bits = zero;
    for (std::size_t b = 0; b < blocks; b += double_lanes) {
        const doubles s = hn::Load(dd, scale + b);
        most = hn::Max(most, s);
        least = hn::Min(least, hn::IfThenElse(hn::Eq(s, zero), none, s));
        bits = hn::Or(bits, s);
    }
    HWY_ALIGN double lanes[double_lanes];
    hn::Store(bits, dd, lanes);
    std::uint64_t mantissa = std::uint64_t{1} << 52;
    for (const double l : lanes) mantissa |= base::bits_of(l) & ((std::uint64_t{1} << 52) - 1);
    const double largest = hn::GetLane(hn::MaxOfLanes(dd, most));
    if (largest == 0) return {};
    const auto exponent = [](double s) { return static_cast<int>(base::bits_of(s) >> 52) - 1023; };
    return {exponent(largest), exponent(hn::GetLane(hn::MinOfLanes(dd, least))),
            53 - std::countr_zero(mantissa), true};
}

// Sums of d, d^2 and x d in units of the outer scale.
struct run_products {
    static constexpr std::size_t room = 4 * double_lanes;
    HWY_ALIGN double d[room], d2[room], xd[room];
    std::size_t of_d2, of_xd;  // terms
    double max_error;
};

template <int of_d2, int of_xd>
HWY_ATTR void multiply_lanes(const product_plan& plan, const block_run& run, const double* scales,
                             const lane_bounds& d2_bounds, const lane_bounds& xd_bounds,
                             run_products& to) {
    const double_tag dd;
    const doubles zero = hn::Zero(dd);
    const doubles start_d2 = anchor(of_d2 == 2 ? d2_bounds.start() : 0);
    const doubles start_xd = anchor(of_xd == 2 ? xd_bounds.start() : 0);
    doubles d[2] = {zero, zero};
    lane_sum<of_d2> d2[2] = {lane_sum<of_d2>(start_d2), lane_sum<of_d2>(start_d2)};
    lane_sum<of_xd> xd[2] = {lane_sum<of_xd>(start_xd), lane_sum<of_xd>(start_xd)};
    doubles max_error[2] = {zero, zero};
    for (std::size_t block = 0; block < run.blocks; ++block) {
        if (plan.slow[block] != 0) continue;
        const doubles scale = hn::Set(dd, plan.scale[block]);
        const doubles u = hn::Set(dd, scales[block]);
        const std::size_t end = (block + 1) * run.stride;
        for (std::size_t v = block * run.stride; v < end; v += float_lanes) {
            for (std::size_t half = 0; half < 2; ++half) {
                const doubles x = half_at(run.x + v, half);
                const doubles q = half_at(plan.q + v, half);
                const doubles uq = hn::Mul(u, q);
                d[half] = hn::Add(d[half], uq);
                d2[half].add(uq, uq);
                xd[half].add(x, uq);
                // S q is exact, so that this rounds once.
                const doubles error = hn::MulSub(scale, q, x);
                max_error[half] = larger(max_error[half], to_compare(error));
            }
        }
    }
    hn::Store(d[0], dd, to.d);
    hn::Store(d[1], dd, to.d + double_lanes);
    to.of_d2 = static_cast<std::size_t>(d2[1].store(d2[0].store(to.d2)) - to.d2);
    to.of_xd = static_cast<std::size_t>(xd[1].store(xd[0].store(to.xd)) - to.xd);
    const doubles worst = larger(max_error[0], max_error[1]);
    to.max_error = hn::GetLane(hn::MaxOfLanes(dd, hn::Abs(worst)));
}

// Adds `count` terms times outer^power.
HWY_ATTR void add_scaled(double* terms, std::size_t count, double outer, int power,
                         base::exact_sum& to) {
    const double_tag dd;
    if (power == 0 || outer == 1) return add_few(terms, count, to);
    HWY_ALIGN double rests[run_products::room];
    const doubles by = hn::Set(dd, outer);
    for (std::size_t i = 0; i < count; i += double_lanes) {
        const product p = two_product(hn::Load(dd, terms + i), by);
        hn::Store(p.high, dd, terms + i);
        hn::Store(p.low, dd, rests + i);
    }
    add_scaled(terms, count, outer, power - 1, to);
    add_scaled(rests, count, outer, power - 1, to);
}

}  // namespace

bool sum_run(block_run& run) {
    using enum block_run::run_sums;
    if (run.whole != unknown) return run.whole == ready;
    find_exponents(run);
    const int count = lane_count(run);
    const int unit = run.exponent_least - run.precision + 1;
    const int most = run.exponent_most + 1;
    const lane_bounds squares{2 * most, 2 * unit, count, 2 * run.precision};
    const int levels = most + count - unit <= 53 ? squares.levels() : 0;
    run.whole = levels == 0 ? too_wide : ready;
    if (levels == 0) return false;
    run.terms_x.reserve(block_run::most_terms);
    run.terms_x2.reserve(block_run::most_terms);
    run.x2_terms = static_cast<std::size_t>(2 * levels) * double_lanes;
    levels == 1 ? sum_lanes<1>(run, squares) : sum_lanes<2>(run, squares);
    return true;
}

HWY_ATTR bool multiply_run(const product_plan& plan, const block_run& run, product_sums& room,
                           block::exact_totals& to, double& max_error) {
    double* const scales = room.q.data();
    const double outer = share_outer(plan, run.blocks, scales);
    const scale_range s = range_of_scales(scales, run.blocks);
    run_products products{};
    if (s.any) {
        const int count = lane_count(run);
        const int most = s.most + 1 + plan.range.most;
        const int unit = s.least - s.bits + 1 + plan.range.least;
        const int bits = s.bits + plan.range.most - plan.range.least;
        // Of x whose d is not zero.
        int least_x = run.exponent_least;
        if (plan.bounded_below) {
            const int by_outer = static_cast<int>(base::bits_of(outer) >> 52) - 1023;
            least_x = std::max(least_x, s.least + by_outer + plan.range.least - 2);
        }
        const lane_bounds d2{2 * most, 2 * unit, count, 2 * bits};
        const lane_bounds xd{run.exponent_most + 1 + most, least_x - run.precision + 1 + unit,
                             count, run.precision + bits};
        const int of_d2 = d2.levels();
        const int of_xd = xd.levels();
        if (most + count - unit > 53 || of_d2 == 0 || of_xd == 0) return false;
        if (of_d2 == 2) {
            of_xd == 2 ? multiply_lanes<2, 2>(plan, run, scales, d2, xd, products)
                       : multiply_lanes<2, 1>(plan, run, scales, d2, xd, products);
        } else {
            of_xd == 2 ? multiply_lanes<1, 2>(plan, run, scales, d2, xd, products)
                       : multiply_lanes<1, 1>(plan, run, scales, d2, xd, products);
        }
    } else {
        multiply_lanes<1, 1>(plan, run, scales, {}, {}, products);
    }
    max_error = products.max_error;
    add_scaled(products.d, 2 * double_lanes, outer, 1, to.d);
    add_scaled(products.d2, products.of_d2, outer, 2, to.d2);
    add_scaled(products.xd, products.of_xd, outer, 1, to.xd);
    HWY_ALIGN double terms[block_run::most_terms];
    std::copy_n(run.terms_x.data(), 2 * double_lanes, terms);
    add_few(terms, 2 * double_lanes, to.x);
    std::copy_n(run.terms_x2.data(), run.x2_terms, terms);
    add_few(terms, run.x2_terms, to.x2);
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (plan.slow[b] == 0 || run.amax.data()[b] >= base::f32_infinity) continue;
        for (std::size_t i = b * run.stride; i < (b + 1) * run.stride; ++i) {
            const auto x = static_cast<double>(run.x[i]);
            to.x.add(-x);
            to.x2.add(-x * x);
        }
    }
    return true;
}

// Bits of x^2: 2 (P + span), and 5 for the elements of a piece; P: the bits of x. Two sums support
// 101, three 149 and so a span of 72 - P.
void sum_values(block_run& run) {
    const std::size_t pieces = pieces_of(run) + batch;
    run.sum_x.reserve(pieces);
    run.sum_x_low.reserve(pieces);
    run.sum_x2.reserve(pieces);
    run.sum_x2_low.reserve(pieces);
    run.sum_x2_least.reserve(pieces);
    run.small = run.small_buffer.reserve(run.blocks * run.stride);
    run.smalls = 0;
    int span = 0;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (run.amax.data()[b] < base::f32_infinity) span = std::max(span, span_of(run, b));
    }
    const int bits = 2 * (run.precision + span) + 5;
    run.x_levels = bits <= 53 ? 1 : bits <= 101 ? 2 : 3;
    const auto by_levels = [&]<std::size_t chunk>() {
        switch (run.x_levels) {
            case 1:
                return sum_pieces<chunk, 1>(run);
            case 2:
                return sum_pieces<chunk, 2>(run);
            default:
                return sum_pieces<chunk, 3>(run);
        }
    };
    if (run.stride < 32) {
        by_levels.template operator()<16>();
    } else {
        by_levels.template operator()<32>();
    }
}

double multiply_elements(const product_plan& plan, const block_run& run, product_sums& to) {
    return run.stride < 32 ? multiply<16>(plan, run, to) : multiply<32>(plan, run, to);
}

HWY_ATTR void add_products(const product_plan& plan, const block_run& run, product_sums& of,
                           block::exact_totals& to) {
    const double_tag dd;
    constexpr std::size_t at_once = 4096;
    const std::size_t per_block = run.stride < 32 ? 1 : run.stride / 32;
    const std::size_t pieces = run.blocks * per_block;
    HWY_ALIGN double scale[at_once];
    HWY_ALIGN double offset[at_once];
    HWY_ALIGN double live[at_once];
    HWY_ALIGN double terms[at_once];
    HWY_ALIGN double rests[at_once];
    block_walk walk(per_block);
    for (std::size_t first = 0; first < pieces; first += at_once) {
        const std::size_t count = std::min(at_once, pieces - first);
        const std::size_t padded = (count + double_lanes - 1) / double_lanes * double_lanes;
        for (std::size_t i = 0; i < padded; ++i) {
            const std::size_t block = walk.next();
            const bool usual = block < run.blocks && plan.slow[block] == 0;
            scale[i] = usual ? plan.scale[block] : 0.0;
            live[i] = usual ? 1.0 : 0.0;
            if (plan.offset != nullptr) {
                offset[i] = usual ? static_cast<double>(plan.offset[block]) : 0.0;
            }
        }
        const auto at = [&](const double* from, std::size_t i)
                            HWY_ATTR { return hn::Load(dd, from + i); };
        // Adds `term` of each piece.
        const auto add = [&](base::exact_sum& sum, auto&& term) HWY_ATTR {
            for (std::size_t i = 0; i < padded; i += double_lanes) {
                hn::Store(term(i), dd, terms + i);
            }
            add_few(terms, padded, sum);
        };
        const auto add_two = [&](base::exact_sum& sum, auto&& term) HWY_ATTR {
            for (std::size_t i = 0; i < padded; i += double_lanes) {
                const product p = term(i);
                hn::Store(p.high, dd, terms + i);
                hn::Store(p.low, dd, rests + i);
            }
            add_few(terms, padded, sum);
            add_few(rests, padded, sum);
        };
        const auto values = [&](const double* from) HWY_ATTR {
            return [&, from](std::size_t i)
                       HWY_ATTR { return hn::Mul(hn::LoadU(dd, from + first + i), at(live, i)); };
        };
        add(to.x, values(run.sum_x.data()));
        if (run.x_levels == 3) add(to.x, values(run.sum_x_low.data()));
        add(to.x2, values(run.sum_x2.data()));
        if (run.x_levels >= 2) add(to.x2, values(run.sum_x2_low.data()));
        if (run.x_levels == 3) add(to.x2, values(run.sum_x2_least.data()));

        const auto loaded = [&](const double* from, std::size_t i)
                                HWY_ATTR { return hn::LoadU(dd, from + first + i); };
        const auto scaled = [&](const double* from) HWY_ATTR {
            return [&, from](std::size_t i)
                       HWY_ATTR { return hn::Mul(at(scale, i), loaded(from, i)); };
        };
        const auto scaled_twice = [&](const double* from) HWY_ATTR {
            return [&, from](std::size_t i) HWY_ATTR {
                return hn::Mul(at(scale, i), hn::Mul(at(scale, i), loaded(from, i)));
            };
        };
        if (plan.power_of_two) {
            add(to.d, scaled(of.q.data()));
            add(to.d2, scaled_twice(of.q2.data()));
            if (of.split_q2) add(to.d2, scaled_twice(of.q2_low.data()));
            add(to.xd, scaled(of.xq.data()));
            if (of.split_xq) add(to.xd, scaled(of.xq_low.data()));
        } else {
            const auto by_scale = [&](const double* from) HWY_ATTR {
                return [&, from](std::size_t i)
                           HWY_ATTR { return two_product(at(scale, i), loaded(from, i)); };
            };
            const auto add_squares = [&](const double* from) HWY_ATTR {
                add_two(to.d2, [&](std::size_t i) HWY_ATTR {
                    return two_product(at(scale, i),
                                       two_product(at(scale, i), loaded(from, i)).high);
                });
                add_two(to.d2, [&](std::size_t i) HWY_ATTR {
                    return two_product(at(scale, i),
                                       two_product(at(scale, i), loaded(from, i)).low);
                });
            };
            add_two(to.d, by_scale(of.q.data()));
            add_squares(of.q2.data());
            if (of.split_q2) add_squares(of.q2_low.data());
            add_two(to.xd, by_scale(of.xq.data()));
            if (of.split_xq) add_two(to.xd, by_scale(of.xq_low.data()));
        }
        if (plan.offset == nullptr) continue;
        // d = O + S q; pieces are full, and O has 11 bits.
        const doubles n = hn::Set(dd, run.stride < 32 ? 16.0 : 32.0);
        const auto by_offset = [&](const double* from) HWY_ATTR {
            return [&, from](std::size_t i) HWY_ATTR {
                return two_product(at(offset, i), hn::Mul(loaded(from, i), at(live, i)));
            };
        };
        add(to.d, [&](std::size_t i) HWY_ATTR { return hn::Mul(n, at(offset, i)); });
        add(to.d2, [&](std::size_t i)
                       HWY_ATTR { return hn::Mul(n, hn::Mul(at(offset, i), at(offset, i))); });
        add_two(to.d2, [&](std::size_t i) HWY_ATTR {
            const doubles d = hn::Mul(at(scale, i), loaded(of.q.data(), i));
            return two_product(hn::Add(at(offset, i), at(offset, i)), d);
        });
        add_two(to.xd, by_offset(run.sum_x.data()));
        if (run.x_levels == 3) add_two(to.xd, by_offset(run.sum_x_low.data()));
    }
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
