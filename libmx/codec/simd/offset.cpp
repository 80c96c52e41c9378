// SPDX-License-Identifier: Apache-2.0
// Blocks with an offset O: y = (x - O)/S. Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/offset.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "libmx/base/half.hpp"
#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/counting.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

template <bool fixed, rounding_kind kind, bool with_codes>
class centred_kernel : public element_rounder<fixed, kind, with_codes> {
  public:
    HWY_INLINE centred_kernel(const element_grid& g, const centred_blocks& centred,
                              const block_scales& scales)
        : element_rounder<fixed, kind, with_codes>(g), centred_(centred), scales_(scales) {}

    HWY_INLINE void set_block(std::size_t block) {
        reciprocal_ = hn::Set(float_tag(), scales_.reciprocal.data()[block]);
        offset_ = hn::Set(float_tag(), centred_.offset.data()[block]);
    }
    HWY_INLINE element_vector take(const float* x, const std::uint32_t* draws,
                                   std::uint8_t* codes) {
        const floats z = hn::Sub(hn::LoadU(float_tag(), x), offset_);
        return this->round(hn::Mul(z, reciprocal_), draws, codes);
    }

  private:
    const centred_blocks& centred_;
    const block_scales& scales_;
    floats reciprocal_, offset_;
};

// The smallest and largest element of every block, one block per lane.
HWY_ATTR void survey_range(const block_run& run, std::size_t first, std::size_t count, float* low,
                           float* high) {
    const float_tag df;
    HWY_ALIGN float lows[batch * float_lanes];
    HWY_ALIGN float highs[batch * float_lanes];
    for (std::size_t i = 0; i < batch; ++i) {
        const float* x = run.x + (first + (i < count ? i : 0)) * run.stride;
        floats bottom = hn::LoadU(df, x);
        floats top = bottom;
        for (std::size_t v = float_lanes; v < run.stride; v += float_lanes) {
            const floats here = hn::LoadU(df, x + v);
            bottom = hn::Min(bottom, here);
            top = hn::Max(top, here);
        }
        hn::Store(bottom, df, lows + i * float_lanes);
        hn::Store(top, df, highs + i * float_lanes);
    }
    fold_batch<min_op>(df, lows, low);
    fold_batch<max_op>(df, highs, high);
}

// The extremes of x - O.
HWY_ATTR void survey_centred(const block_run& run, std::size_t first, std::size_t count,
                             centred_blocks& out) {
    const float_tag df;
    const bits_tag du;
    const words one = hn::Set(du, 1);
    HWY_ALIGN std::uint32_t most[batch * float_lanes];
    HWY_ALIGN std::uint32_t least[batch * float_lanes];
    HWY_ALIGN std::uint32_t few[batch];
    for (std::size_t i = 0; i < batch; ++i) {
        const std::size_t b = first + (i < count ? i : 0);
        const float* x = run.x + b * run.stride;
        const floats offset = hn::Set(df, out.offset.data()[b]);
        words top = hn::Zero(du);
        words bottom = hn::Set(du, ~0u);
        std::size_t nonzero = 0;
        for (std::size_t v = 0; v < run.stride; v += float_lanes) {
            const words a = hn::BitCast(du, hn::Abs(hn::Sub(hn::LoadU(df, x + v), offset)));
            top = hn::Max(top, a);
            bottom = hn::Min(bottom, hn::Sub(a, one));
            nonzero += hn::CountTrue(du, hn::Ne(a, hn::Zero(du)));
        }
        hn::Store(top, du, most + i * float_lanes);
        hn::Store(bottom, du, least + i * float_lanes);
        out.nonzero.data()[first + i] = i < count ? static_cast<std::uint32_t>(nonzero) : 0;
    }
    fold_batch<max_op>(du, most, out.amax.data() + first);
    fold_batch<min_op>(du, least, few);
    for (std::size_t i = 0; i < batch; ++i) out.amin.data()[first + i] = few[i] + 1;
}

}  // namespace

HWY_ATTR void centre(const block_run& run, range_kind range, centred_blocks& out) {
    HWY_ALIGN float low[batch];
    HWY_ALIGN float high[batch];
    for (std::size_t first = 0; first < run.blocks; first += batch) {
        const std::size_t count = std::min(batch, run.blocks - first);
        survey_range(run, first, count, low, high);
        for (std::size_t i = 0; i < batch; ++i) {
            // fp16(max/2 + min/2), with zero as +0, as in the reference.
            const float middle = 0.5f * high[i] + 0.5f * low[i];
            const bool finite = run.amax.data()[first + i] < base::f32_infinity;
            const std::uint16_t half = finite ? base::half_saturated(middle) : std::uint16_t{0};
            const std::uint16_t offset = half == 0x8000u ? std::uint16_t{0} : half;
            out.offset_bits.data()[first + i] = offset;
            out.offset.data()[first + i] = base::float_from_half(offset);
        }
        survey_centred(run, first, count, out);
        for (std::size_t i = 0; i < batch; ++i) {
            std::uint32_t ruled = out.amax.data()[first + i];
            if (range == range_kind::half) {
                const float whole = high[i] - low[i];
                const float half =
                    (base::bits_of(whole) & base::f32_magnitude_mask) == base::f32_infinity
                        ? 0.5f * high[i] - 0.5f * low[i]
                        : 0.5f * whole;
                ruled = base::bits_of(half) & base::f32_magnitude_mask;
            }
            // Blocks that are not finite or padded with zeros go to the reference.
            const std::size_t b = first + i;
            const bool usual = i < count && run.amax.data()[b] < base::f32_infinity &&
                               extent_of(run.place, b).size() == run.stride;
            out.ruled.data()[b] = usual ? ruled : ~0u >> 1;
        }
    }
}

void centred_elements(const element_grid& g, const block_run& run, const centred_blocks& centred,
                      const block_scales& scales, const element_outputs& to, grid_counts& counts) {
    by_grid(g, [&]<bool fixed, rounding_kind kind>() {
        if (to.codes != nullptr || to.parts != nullptr) {
            run_kernel<centred_kernel<fixed, kind, true>>(run, scales, to, counts, g, centred,
                                                          scales);
        } else {
            run_kernel<centred_kernel<fixed, kind, false>>(run, scales, to, counts, g, centred,
                                                           scales);
        }
    });
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
