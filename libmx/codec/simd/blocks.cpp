// SPDX-License-Identifier: Apache-2.0
// Per-block results: scales and flags. Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "libmx/base/bits.hpp"
#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/rounding.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

using byte_tag = hn::Rebind<std::uint8_t, bits_tag>;

template <class M>
HWY_INLINE std::uint64_t number_of(M mask) {
    return hn::CountTrue(bits_tag(), mask);
}

// Flags of blocks from the results for their smallest and largest non-zero magnitudes.
struct judge_state {
    explicit HWY_INLINE judge_state(const element_grid& g)
        : limit(hn::Set(float_tag(), g.max_positive)), uneven(g.max_positive != g.max_negative) {}

    // Nearest roundings are monotone: the extremes of the block become the extremes of its codes.
    HWY_INLINE void add_monotone(words nonzero, words slow, floats least, floats most,
                                 block_verdicts& out, std::uint8_t* doubtful) const {
        const bits_tag du;
        const auto eligible = count_kinds(nonzero, slow, out);
        const auto at_top = as_words(hn::Ge(least, limit));
        const auto dead = as_words(hn::Eq(most, hn::Zero(float_tag())));
        const auto collapsed =
            hn::AndNot(dead, as_words(hn::Eq(hn::Min(least, limit), hn::Min(most, limit))));
        // If the largest values of the two signs differ, blocks at the limit need the reference.
        const auto doubt = uneven ? hn::And(eligible, at_top) : hn::Ne(slow, slow);
        const auto sure = hn::AndNot(doubt, eligible);
        out.collapsed += number_of(hn::And(sure, collapsed));
        out.saturated += number_of(hn::And(sure, at_top));
        out.dead += number_of(hn::And(sure, dead));
        out.doubtful += number_of(doubt);
        hn::StoreU(hn::TruncateTo(byte_tag(), hn::IfThenElseZero(doubt, hn::Set(du, 1))),
                   byte_tag(), doubtful);
    }

    // Other roundings may take any element up or down: all codes can be equal only if the largest
    // element rounded down is at most the smallest rounded up. Other blocks have no flag.
    HWY_INLINE void add_either_way(words nonzero, words slow, floats least_above, floats most_below,
                                   block_verdicts& out, std::uint8_t* doubtful) const {
        const bits_tag du;
        const auto eligible = count_kinds(nonzero, slow, out);
        const auto doubt =
            hn::And(eligible, as_words(hn::Le(hn::Min(most_below, limit), least_above)));
        out.doubtful += number_of(doubt);
        hn::StoreU(hn::TruncateTo(byte_tag(), hn::IfThenElseZero(doubt, hn::Set(du, 1))),
                   byte_tag(), doubtful);
    }

  private:
    using word_mask = hn::Mask<bits_tag>;
    static HWY_INLINE word_mask as_words(hn::Mask<float_tag> m) {
        return hn::RebindMask(bits_tag(), m);
    }
    static HWY_INLINE word_mask count_kinds(words nonzero, words slow, block_verdicts& out) {
        const bits_tag du;
        const int_tag di;
        const auto fast = hn::Eq(slow, hn::Zero(du));
        const auto many = hn::RebindMask(du, hn::Gt(hn::BitCast(di, nonzero), hn::Set(di, 1)));
        const auto eligible = hn::And(fast, many);
        out.zero += number_of(hn::And(fast, hn::Eq(nonzero, hn::Zero(du))));
        out.eligible += number_of(eligible);
        out.nonzero += hn::GetLane(hn::SumOfLanes(du, hn::IfThenElseZero(fast, nonzero)));
        return eligible;
    }

    floats limit;
    bool uneven;
};

template <bool fixed>
HWY_ATTR void judge_blocks(const element_grid& g, const block_extremes& e, std::size_t blocks,
                           const block_scales& scales, block_verdicts& out,
                           std::uint8_t* doubtful) {
    const float_tag df;
    const bits_tag du;
    const grid_vectors<fixed, rounding_kind::nearest> grid(g);
    const judge_state state(g);
    words largest = hn::Zero(du);
    for (std::size_t b = 0; b < blocks; b += float_lanes) {
        const floats reciprocal = hn::Load(df, scales.reciprocal.data() + b);
        const auto scaled = [&](const std::uint32_t* bits) HWY_ATTR {
            return hn::Mul(hn::BitCast(df, hn::Load(du, bits + b)), reciprocal);
        };
        const floats least = scaled(e.amin);
        const floats most = scaled(e.amax);
        const words slow = hn::PromoteTo(du, hn::LoadU(byte_tag(), scales.slow.data() + b));
        const words nonzero = hn::Load(du, e.nonzero + b);
        const auto fast = hn::Eq(slow, hn::Zero(du));
        largest = hn::Max(largest, hn::IfThenElseZero(fast, hn::Load(du, e.amax + b)));
        if (g.rounding == rounding_kind::nearest) {
            state.add_monotone(nonzero, slow, grid.round(least, least, hn::Zero(du)),
                               grid.round(most, most, hn::Zero(du)), out, doubtful + b);
        } else {
            floats most_below, least_above, other;
            grid.neighbours(least, other, least_above);
            grid.neighbours(most, most_below, other);
            state.add_either_way(nonzero, slow, least_above, most_below, out, doubtful + b);
        }
    }
    out.amax = hn::GetLane(hn::MaxOfLanes(du, largest));
}

template <quotient_kind kind, rounding_kind how>
HWY_ATTR void judge_dialect_blocks(const element_grid& g, const block_extremes& e,
                                   std::size_t blocks, const dialect_scales& of_dialect,
                                   const block_scales& scales, block_verdicts& out,
                                   std::uint8_t* doubtful) {
    const float_tag df;
    const double_tag dd;
    const bits_tag du;
    const grid_vectors<false, rounding_kind::nearest> grid(g);
    const exact_quotients exactly(g);
    const judge_state state(g);
    words largest = hn::Zero(du);
    for (std::size_t b = 0; b < blocks; b += float_lanes) {
        const doubles low = hn::Load(dd, of_dialect.inverse.data() + b);
        const doubles high = hn::Load(dd, of_dialect.inverse.data() + b + double_lanes);
        const floats factor = hn::Load(df, of_dialect.factor.data() + b);
        const auto rounded = [&](const std::uint32_t* bits) HWY_ATTR {
            const floats x = hn::BitCast(df, hn::Load(du, bits + b));
            if constexpr (kind == quotient_kind::exact) {
                return exactly.round(x, low, high);
            } else {
                const floats y = float_quotient<kind>(x, factor);
                return grid.round(y, y, hn::Zero(du));
            }
        };
        const words slow = hn::PromoteTo(du, hn::LoadU(byte_tag(), scales.slow.data() + b));
        const auto fast = hn::Eq(slow, hn::Zero(du));
        largest = hn::Max(largest, hn::IfThenElseZero(fast, hn::Load(du, e.amax + b)));
        const words nonzero = hn::Load(du, e.nonzero + b);
        if constexpr (how == rounding_kind::nearest) {
            state.add_monotone(nonzero, slow, rounded(e.amin), rounded(e.amax), out, doubtful + b);
        } else {
            const floats least = hn::BitCast(df, hn::Load(du, e.amin + b));
            const floats most = hn::BitCast(df, hn::Load(du, e.amax + b));
            floats most_below, least_above, other;
            exactly.neighbours(least, low, high, other, least_above);
            exactly.neighbours(most, low, high, most_below, other);
            state.add_either_way(nonzero, slow, least_above, most_below, out, doubtful + b);
        }
    }
    out.amax = hn::GetLane(hn::MaxOfLanes(du, largest));
}

}  // namespace

HWY_ATTR void scale(const element_grid& g, const block_extremes& e, std::size_t blocks,
                    block_scales& out) {
    const float_tag df;
    const bits_tag du;
    const int_tag di;
    const ints largest = hn::Set(di, base::f32_infinity - 1u);
    const ints smallest = hn::Set(di, 1 << 23);
    const words rule_step = hn::Set(du, g.rule_step);
    const ints rule_base = hn::Set(di, g.rule_base);
    const ints rule_finite = hn::Set(di, g.rule_finite);
    out.slow_blocks = 0;
    for (std::size_t b = 0; b < blocks; b += float_lanes) {
        const words amax = hn::Load(du, e.amax + b);
        const words amin = hn::Load(du, e.amin + b);
        const words ruled = hn::Load(du, e.ruled + b);
        const auto no_range = hn::Eq(ruled, hn::Zero(du));
        const auto zero = hn::And(no_range, hn::Eq(amax, hn::Zero(du)));
        const ints exponent = hn::BitCast(di, hn::ShiftRight<23>(hn::Add(ruled, rule_step)));
        const ints clamped =
            hn::Min(hn::Max(hn::Sub(exponent, rule_base), hn::Zero(di)), hn::Set(di, 254));
        const words code = hn::IfThenZeroElse(no_range, hn::BitCast(du, clamped));
        const words reciprocal = hn::ShiftLeft<23>(hn::Sub(hn::Set(du, 254), code));
        const floats least = hn::Mul(hn::BitCast(df, amin), hn::BitCast(df, reciprocal));
        const floats most = hn::Mul(hn::BitCast(df, amax), hn::BitCast(df, reciprocal));
        const ints signed_code = hn::BitCast(di, code);
        const auto as_words = [&](auto m) HWY_ATTR { return hn::RebindMask(du, m); };
        auto slow = as_words(hn::Lt(least, hn::Set(df, g.least)));
        slow = hn::Or(slow, as_words(hn::Gt(most, hn::Set(df, g.most))));
        slow = hn::Or(slow, as_words(hn::Lt(hn::BitCast(di, ruled), smallest)));
        slow = hn::Or(slow, as_words(hn::Lt(signed_code, hn::Set(di, 1))));
        slow = hn::Or(slow, as_words(hn::Gt(signed_code, hn::Set(di, 253))));
        slow = hn::AndNot(zero, slow);
        slow = hn::Or(slow, as_words(hn::Gt(hn::BitCast(di, amax), largest)));
        slow = hn::Or(slow, as_words(hn::Gt(hn::BitCast(di, ruled), rule_finite)));
        slow = hn::Or(slow, as_words(hn::Gt(exponent, hn::Set(di, 254))));
        hn::Store(code, du, out.code.data() + b);
        hn::Store(hn::BitCast(df, reciprocal), df, out.reciprocal.data() + b);
        hn::Store(hn::BitCast(df, hn::ShiftLeft<23>(code)), df, out.scale.data() + b);
        hn::StoreU(hn::TruncateTo(byte_tag(), hn::IfThenElseZero(slow, hn::Set(du, 1))), byte_tag(),
                   out.slow.data() + b);
        out.slow_blocks += number_of(slow);
    }
    // Padding in the last vector is not a block.
    std::fill_n(out.slow.data() + blocks, batch, std::uint8_t{1});
    std::fill_n(out.reciprocal.data() + blocks, batch, 0.0f);
    std::fill_n(out.scale.data() + blocks, batch, 0.0f);
}

void judge(const element_grid& g, const block_extremes& e, std::size_t blocks,
           const block_scales& scales, block_verdicts& out, std::uint8_t* doubtful) {
    if (g.fixed) return judge_blocks<true>(g, e, blocks, scales, out, doubtful);
    return judge_blocks<false>(g, e, blocks, scales, out, doubtful);
}

void judge_dialect(const element_grid& g, quotient_kind kind, const block_extremes& e,
                   std::size_t blocks, const dialect_scales& of_dialect, const block_scales& scales,
                   block_verdicts& out, std::uint8_t* doubtful) {
    by_quotient(g, kind, [&]<bool, quotient_kind of, rounding_kind how>() {
        judge_dialect_blocks<of, how>(g, e, blocks, of_dialect, scales, out, doubtful);
    });
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
