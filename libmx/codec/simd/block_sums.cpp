// SPDX-License-Identifier: Apache-2.0
// The sums of single blocks, each rounded once: a block to each lane. One body, compiled per
// instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/block_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/sums.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

using wide_ints = hn::Vec<hn::RebindToSigned<double_tag>>;

// Adds `v` to `sum`, and returns what the rounding of the sum loses (Knuth's TwoSum).
HWY_INLINE doubles two_sum(doubles& sum, doubles v) {
    const doubles all = hn::Add(sum, v);
    const doubles added = hn::Sub(all, sum);
    const doubles lost = hn::Add(hn::Sub(sum, hn::Sub(all, added)), hn::Sub(v, added));
    sum = all;
    return lost;
}

// A sum in three doubles, exact unless something is lost.
class long_sum {
  public:
    HWY_INLINE long_sum()
        : high_(hn::Zero(double_tag())), middle_(high_), low_(high_), lost_(high_) {}

    HWY_INLINE void add(doubles v) {
        lost_ = hn::Or(lost_, two_sum(low_, two_sum(middle_, two_sum(high_, v))));
    }
    HWY_INLINE void add(const product& p) {
        add(p.high);
        add(p.low);
    }

    // The sum rounded once; clears the lanes of `sure` where that is not certain: all that is known
    // of the last part is that it lies between two bounds, which must round alike.
    HWY_INLINE doubles value(hn::Mask<double_tag>& sure) const {
        const double_tag dd;
        doubles high = high_, middle = middle_;
        middle = two_sum(high, middle);
        const doubles least = two_sum(middle, low_);
        middle = two_sum(high, middle);
        const doubles rest = hn::Add(middle, least);
        const doubles slack = hn::Mul(hn::Abs(rest), hn::Set(dd, 0x1p-50));
        const doubles value = hn::Add(high, hn::Add(rest, slack));
        sure = hn::And(sure, hn::Eq(value, hn::Add(high, hn::Sub(rest, slack))));
        sure = hn::And(sure, hn::Eq(lost_, hn::Zero(dd)));
        return value;
    }

  private:
    doubles high_, middle_, low_, lost_;
};

// The sums of the blocks in the lanes.
struct sums_of_blocks {
    long_sum x2, xd, d2, error, error2;

    HWY_INLINE sums_of_blocks() : x2(), xd(), d2(), error(), error2() {}

    HWY_INLINE void add_x(doubles v) { error.add(hn::Neg(v)); }
    HWY_INLINE void add_x2(doubles v) {
        x2.add(v);
        error2.add(v);
    }
    HWY_INLINE void add_d(doubles v) { error.add(v); }
    HWY_INLINE void add_d(const product& p) { error.add(p); }
    HWY_INLINE void add_d2(doubles v) {
        d2.add(v);
        error2.add(v);
    }
    HWY_INLINE void add_d2(const product& p) {
        add_d2(p.high);
        add_d2(p.low);
    }
    HWY_INLINE void add_xd(doubles v) {
        xd.add(v);
        error2.add(hn::Mul(v, hn::Set(double_tag(), -2.0)));
    }
    HWY_INLINE void add_xd(const product& p) {
        add_xd(p.high);
        add_xd(p.low);
    }
};

template <bool power_of_two, bool centred>
class piece_adder {
  public:
    HWY_INLINE piece_adder(const block_run& run, const product_sums& of, doubles scale,
                           doubles offset)
        : run_(run), of_(of), scale_(scale), offset_(offset) {}

    // The pieces at these indices.
    HWY_INLINE void add(wide_ints at, sums_of_blocks& to) const {
        const double_tag dd;
        const auto load = [&](const auto& from)
                              HWY_ATTR { return hn::GatherIndex(dd, from.data(), at); };
        const bool third = run_.x_levels == 3;
        const doubles x = load(run_.sum_x);
        const doubles x_low = third ? load(run_.sum_x_low) : hn::Zero(dd);
        to.add_x(x);
        to.add_x2(load(run_.sum_x2));
        if (run_.x_levels >= 2) to.add_x2(load(run_.sum_x2_low));
        if (third) {
            to.add_x(x_low);
            to.add_x2(load(run_.sum_x2_least));
        }
        const doubles q = load(of_.q);
        add_squares(load(of_.q2), to);
        if (of_.split_q2) add_squares(load(of_.q2_low), to);
        if constexpr (power_of_two) {
            to.add_d(hn::Mul(scale_, q));
            to.add_xd(hn::Mul(scale_, load(of_.xq)));
            if (of_.split_xq) to.add_xd(hn::Mul(scale_, load(of_.xq_low)));
        } else {
            to.add_d(two_product(scale_, q));
            to.add_xd(two_product(scale_, load(of_.xq)));
            if (of_.split_xq) to.add_xd(two_product(scale_, load(of_.xq_low)));
        }
        if constexpr (centred) {
            // d = O + S q; pieces are full, and O has 11 bits.
            const doubles all = hn::Mul(hn::Set(dd, run_.stride < 32 ? 16.0 : 32.0), offset_);
            to.add_d(all);
            to.add_d2(hn::Mul(all, offset_));
            to.add_d2(two_product(hn::Add(offset_, offset_), hn::Mul(scale_, q)));
            to.add_xd(two_product(offset_, x));
            if (third) to.add_xd(two_product(offset_, x_low));
        }
    }

  private:
    HWY_INLINE void add_squares(doubles q2, sums_of_blocks& to) const {
        if constexpr (power_of_two) {
            to.add_d2(hn::Mul(scale_, hn::Mul(scale_, q2)));
        } else {
            const product once = two_product(scale_, q2);
            to.add_d2(two_product(scale_, once.high));
            to.add_d2(two_product(scale_, once.low));
        }
    }

    const block_run& run_;
    const product_sums& of_;
    doubles scale_, offset_;
};

template <bool power_of_two, bool centred>
HWY_ATTR void round_blocks(const product_plan& plan, const block_run& run, const product_sums& of,
                           block::block_sums* to, std::uint8_t* doubtful) {
    const double_tag dd;
    const hn::RebindToSigned<double_tag> di;
    const std::size_t per_block = run.stride < 32 ? 1 : run.stride / 32;
    HWY_ALIGN std::int64_t first_piece[double_lanes];
    HWY_ALIGN double found[5][double_lanes];
    for (std::size_t b = 0; b < run.blocks; b += double_lanes) {
        for (std::size_t i = 0; i < double_lanes; ++i) {
            // Lanes without a block get a copy.
            const std::size_t block = std::min(b + i, run.blocks - 1);
            first_piece[i] = static_cast<std::int64_t>(block * per_block);
        }
        doubles offset = hn::Zero(dd);
        if constexpr (centred) {
            offset = hn::PromoteTo(dd, hn::LoadU(half_tag(), plan.offset + b));
        }
        const piece_adder<power_of_two, centred> pieces(run, of, hn::LoadU(dd, plan.scale + b),
                                                        offset);
        wide_ints at = hn::Load(di, first_piece);
        sums_of_blocks sums;
        for (std::size_t k = 0; k < per_block; ++k) {
            pieces.add(at, sums);
            at = hn::Add(at, hn::Set(di, 1));
        }
        auto sure = hn::Eq(hn::Zero(dd), hn::Zero(dd));
        hn::Store(sums.error2.value(sure), dd, found[0]);
        hn::Store(sums.x2.value(sure), dd, found[1]);
        hn::Store(sums.xd.value(sure), dd, found[2]);
        hn::Store(sums.d2.value(sure), dd, found[3]);
        hn::Store(sums.error.value(sure), dd, found[4]);
        const std::size_t count = std::min(double_lanes, run.blocks - b);
        std::uint8_t sure_bits[8] = {};
        hn::StoreMaskBits(dd, sure, sure_bits);
        for (std::size_t i = 0; i < count; ++i) {
            to[b + i] = {found[0][i], found[1][i], found[2][i], found[3][i], found[4][i], 0};
            doubtful[b + i] = (sure_bits[0] >> i & 1) != 0 ? 0 : 1;
        }
    }
}

template <class Error>
HWY_ATTR void find_errors(const product_plan& plan, const block_run& run, block::block_sums* to) {
    const float_tag df;
    const double_tag dd;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        if (plan.slow[b] != 0) continue;
        Error error;
        error.scale = hn::Set(dd, plan.scale[b]);
        if constexpr (std::is_same_v<Error, centred_error>) {
            error.offset = hn::Set(dd, static_cast<double>(plan.offset[b]));
        }
        doubles most = hn::Zero(dd);
        for (std::size_t i = b * run.stride; i < (b + 1) * run.stride; i += float_lanes) {
            const floats x = hn::LoadU(df, run.x + i);
            const floats q = hn::Load(df, plan.q + i);
            most = hn::Max(most, hn::Abs(error.of(lower(x), lower(q))));
            most = hn::Max(most, hn::Abs(error.of(upper(x), upper(q))));
        }
        to[b].max_error = hn::GetLane(hn::MaxOfLanes(dd, most));
    }
}

}  // namespace

void round_sums(const product_plan& plan, const block_run& run, const product_sums& of,
                block::block_sums* to, std::uint8_t* doubtful) {
    if (plan.offset != nullptr) {
        round_blocks<true, true>(plan, run, of, to, doubtful);
        return find_errors<centred_error>(plan, run, to);
    }
    plan.power_of_two ? round_blocks<true, false>(plan, run, of, to, doubtful)
                      : round_blocks<false, false>(plan, run, of, to, doubtful);
    find_errors<plain_error>(plan, run, to);
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
