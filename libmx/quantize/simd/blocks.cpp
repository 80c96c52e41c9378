// SPDX-License-Identifier: Apache-2.0
// What is computed once per block: scales and flags. One body, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/quantize/simd/blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "libmx/base/bits.hpp"
#include "libmx/quantize/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/quantize/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/quantize/simd/vectors.inc"
// clang-format off: uses what vectors.inc declares
#include "libmx/quantize/simd/rounding.inc"
// clang-format on

namespace mx::quantize::simd::HWY_NAMESPACE {
namespace {

using byte_tag = hn::Rebind<std::uint8_t, bits_tag>;

template <class M>
HWY_INLINE std::uint64_t number_of(M mask) {
    return hn::CountTrue(bits_tag(), mask);
}

// Flags from the smallest and largest magnitudes of a block's non-zero elements, in codes' values.
struct judge_state {
    HWY_INLINE judge_state(const element_grid& g)
        : least_limit(hn::Set(float_tag(), g.max_positive)),
          uneven(g.max_positive != g.max_negative) {}

    HWY_INLINE void add(words nonzero, words slow, floats least, floats most, block_verdicts& out,
                        std::uint8_t* doubtful) const {
        const bits_tag du;
        const auto fast = hn::Eq(slow, hn::Zero(du));
        const auto as_words = [&](auto m) HWY_ATTR { return hn::RebindMask(du, m); };
        const ints many = hn::BitCast(int_tag(), nonzero);
        const auto eligible = hn::And(fast, as_words(hn::Gt(many, hn::Set(int_tag(), 1))));
        const auto at_top = as_words(hn::Ge(least, least_limit));
        const auto dead = as_words(hn::Eq(most, hn::Zero(float_tag())));
        const auto collapsed = hn::AndNot(
            dead, as_words(hn::Eq(hn::Min(least, least_limit), hn::Min(most, least_limit))));
        // Where the ends differ by sign, a block that lies at them needs a closer look.
        const auto doubt = uneven ? hn::And(eligible, at_top) : hn::Ne(slow, slow);
        const auto sure = hn::AndNot(doubt, eligible);
        out.zero += number_of(hn::And(fast, hn::Eq(nonzero, hn::Zero(du))));
        out.eligible += number_of(eligible);
        out.collapsed += number_of(hn::And(sure, collapsed));
        out.saturated += number_of(hn::And(sure, at_top));
        out.dead += number_of(hn::And(sure, dead));
        out.nonzero += hn::GetLane(hn::SumOfLanes(du, hn::IfThenElseZero(fast, nonzero)));
        hn::StoreU(hn::TruncateTo(byte_tag(), hn::IfThenElseZero(doubt, hn::Set(du, 1))),
                   byte_tag(), doubtful);
    }

    floats least_limit;
    bool uneven;
};

template <bool fixed>
HWY_ATTR void judge_extremes(const element_grid& g, const block_run& run,
                             const block_scales& scales, block_verdicts& out,
                             std::uint8_t* doubtful) {
    const float_tag df;
    const bits_tag du;
    const grid_vectors<fixed, rounding_kind::nearest> grid(g);
    const judge_state state(g);
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        // Nearest roundings are monotone: the extremes of the block become those of its codes.
        const floats reciprocal = hn::Load(df, scales.reciprocal.data() + b);
        const auto rounded = [&](const std::uint32_t* bits) HWY_ATTR {
            const floats a = hn::Mul(hn::BitCast(df, hn::Load(du, bits + b)), reciprocal);
            return grid.round(a, a, hn::Zero(du));
        };
        const words slow = hn::PromoteTo(du, hn::LoadU(byte_tag(), scales.slow.data() + b));
        state.add(hn::Load(du, run.nonzero.data() + b), slow, rounded(run.amin.data()),
                  rounded(run.amax.data()), out, doubtful + b);
    }
}

HWY_ATTR void judge_chunks(const element_grid& g, const block_run& run, const block_scales& scales,
                           const chunk_sums& sums, block_verdicts& out, std::uint8_t* doubtful) {
    const float_tag df;
    const bits_tag du;
    const judge_state state(g);
    const std::size_t per_block = run.stride < 32 ? 1 : run.stride / 32;
    HWY_ALIGN float least[float_lanes];
    HWY_ALIGN float most[float_lanes];
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        for (std::size_t i = 0; i < float_lanes; ++i) {
            least[i] = 0x1p100f;
            most[i] = 0;
            if (b + i >= run.blocks) continue;
            for (std::size_t c = (b + i) * per_block; c < (b + i + 1) * per_block; ++c) {
                least[i] = std::min(least[i], sums.least.data()[c]);
                most[i] = std::max(most[i], sums.most.data()[c]);
            }
        }
        const words slow = hn::PromoteTo(du, hn::LoadU(byte_tag(), scales.slow.data() + b));
        state.add(hn::Load(du, run.nonzero.data() + b), slow, hn::Load(df, least),
                  hn::Load(df, most), out, doubtful + b);
    }
}

}  // namespace

HWY_ATTR void scale(const element_grid& g, const block_run& run, block_scales& out) {
    const float_tag df;
    const bits_tag du;
    const int_tag di;
    const ints largest = hn::Set(di, base::f32_infinity - 1u);
    const ints smallest = hn::Set(di, 1 << 23);
    const words rule_step = hn::Set(du, g.rule_step);
    const ints rule_base = hn::Set(di, g.rule_base);
    out.slow_blocks = 0;
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        const words amax = hn::Load(du, run.amax.data() + b);
        const words amin = hn::Load(du, run.amin.data() + b);
        const auto zero = hn::Eq(amax, hn::Zero(du));
        const ints exponent = hn::BitCast(di, hn::ShiftRight<23>(hn::Add(amax, rule_step)));
        const ints clamped =
            hn::Min(hn::Max(hn::Sub(exponent, rule_base), hn::Zero(di)), hn::Set(di, 254));
        const words code = hn::IfThenZeroElse(zero, hn::BitCast(du, clamped));
        const words reciprocal = hn::ShiftLeft<23>(hn::Sub(hn::Set(du, 254), code));
        const floats least = hn::Mul(hn::BitCast(df, amin), hn::BitCast(df, reciprocal));
        const ints signed_code = hn::BitCast(di, code);
        const auto as_words = [&](auto m) HWY_ATTR { return hn::RebindMask(du, m); };
        auto slow = as_words(hn::Lt(least, hn::Set(df, 0x1p-60f)));
        slow = hn::Or(slow, as_words(hn::Lt(hn::BitCast(di, amax), smallest)));
        slow = hn::Or(slow, as_words(hn::Lt(signed_code, hn::Set(di, g.least_code))));
        slow = hn::Or(slow, as_words(hn::Gt(signed_code, hn::Set(di, 253))));
        slow = hn::AndNot(zero, slow);
        slow = hn::Or(slow, as_words(hn::Gt(hn::BitCast(di, amax), largest)));
        slow = hn::Or(slow, as_words(hn::Gt(exponent, hn::Set(di, 254))));
        hn::Store(code, du, out.code.data() + b);
        hn::Store(hn::BitCast(df, reciprocal), df, out.reciprocal.data() + b);
        hn::Store(hn::BitCast(df, hn::ShiftLeft<23>(code)), df, out.scale.data() + b);
        hn::StoreU(hn::TruncateTo(byte_tag(), hn::IfThenElseZero(slow, hn::Set(du, 1))), byte_tag(),
                   out.slow.data() + b);
        out.slow_blocks += number_of(slow);
    }
    // What fills the last vector up is no block.
    std::fill_n(out.slow.data() + run.blocks, float_lanes, std::uint8_t{1});
}

void judge(const element_grid& g, const block_run& run, const block_scales& scales,
           const chunk_sums& sums, block_verdicts& out, std::uint8_t* doubtful) {
    if (g.rounding != rounding_kind::nearest) {
        return judge_chunks(g, run, scales, sums, out, doubtful);
    }
    if (g.fixed) return judge_extremes<true>(g, run, scales, out, doubtful);
    return judge_extremes<false>(g, run, scales, out, doubtful);
}

}  // namespace mx::quantize::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
