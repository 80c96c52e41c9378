// SPDX-License-Identifier: Apache-2.0
// Blocks with an offset O: y = (x - O)/S, and all sums in double, in units of x. One body, compiled
// per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/offset.cpp"
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

// Sums of terms of a chunk, one per lane of double.
struct centred_terms {
    doubles error2, x2, xd, d2, error, max_error;
};

// Also the squared errors by part. Flat: as a struct in a struct they would stay in memory.
struct parted_terms {
    doubles error2, x2, xd, d2, error, max_error;
    doubles clamp, underflow, grid;
};

HWY_INLINE centred_terms joined(const centred_terms& a, const centred_terms& b) {
    return {hn::Add(a.error2, b.error2), hn::Add(a.x2, b.x2),
            hn::Add(a.xd, b.xd),         hn::Add(a.d2, b.d2),
            hn::Add(a.error, b.error),   hn::Max(a.max_error, b.max_error)};
}
HWY_INLINE parted_terms joined(const parted_terms& a, const parted_terms& b) {
    return {hn::Add(a.error2, b.error2), hn::Add(a.x2, b.x2),
            hn::Add(a.xd, b.xd),         hn::Add(a.d2, b.d2),
            hn::Add(a.error, b.error),   hn::Max(a.max_error, b.max_error),
            hn::Add(a.clamp, b.clamp),   hn::Add(a.underflow, b.underflow),
            hn::Add(a.grid, b.grid)};
}

// Both halves of a float vector: `low` and `high` stay apart until nothing lies farther apart.
template <class Terms>
struct halves {
    Terms low, high;
};

template <bool fixed, rounding_kind kind, bool with_codes, bool with_parts>
class centred_kernel : public element_rounder<fixed, kind, with_codes> {
  public:
    using terms_of = std::conditional_t<with_parts, parted_terms, centred_terms>;

    explicit HWY_INLINE centred_kernel(const element_grid& g)
        : element_rounder<fixed, kind, with_codes>(g), max_error_(hn::Zero(double_tag())) {}

    HWY_INLINE void set_block(float reciprocal, float scale, float offset) {
        reciprocal_ = hn::Set(float_tag(), reciprocal);
        scale_ = hn::Set(double_tag(), static_cast<double>(scale));
        offset_ = hn::Set(float_tag(), offset);
        wide_offset_ = hn::Set(double_tag(), static_cast<double>(offset));
    }

    // As in chunk_kernel.
    template <std::size_t vectors, std::size_t step>
    HWY_INLINE halves<terms_of> terms(const float* x, const std::uint32_t* draws,
                                      std::uint8_t* codes, std::size_t i) {
        if constexpr (step == vectors) {
            const std::size_t at = i * float_lanes;
            const floats v = hn::LoadU(float_tag(), x + at);
            const floats y = hn::Mul(hn::Sub(v, offset_), reciprocal_);
            const element_vector e =
                this->round(y, this->draws_from(draws, at), this->codes_from(codes, at));
            this->count_codes(e);
            if constexpr (with_parts) {
                // Where x = O there is no error, so that q = 0 tells underflow.
                const floats one = hn::Set(float_tag(), 1.0f);
                const floats clamped = hn::IfThenElseZero(hn::Gt(e.unbounded, e.limit), one);
                const floats vanished =
                    hn::IfThenElseZero(hn::Eq(e.unbounded, hn::Zero(float_tag())), one);
                return {parted(products(lower(v), lower(e.q)), lower(clamped), lower(vanished)),
                        parted(products(upper(v), upper(e.q)), upper(clamped), upper(vanished))};
            } else {
                return {products(lower(v), lower(e.q)), products(upper(v), upper(e.q))};
            }
        } else {
            const halves<terms_of> a = terms<vectors, 2 * step>(x, draws, codes, i);
            const halves<terms_of> b = terms<vectors, 2 * step>(x, draws, codes, i + step);
            return {joined(a.low, b.low), joined(a.high, b.high)};
        }
    }

    HWY_INLINE void keep_max(doubles max_error) { max_error_ = hn::Max(max_error_, max_error); }

    HWY_INLINE void finish(grid_counts& out) {
        element_rounder<fixed, kind, with_codes>::finish(out);
        out.max_error =
            std::max(out.max_error, hn::GetLane(hn::MaxOfLanes(double_tag(), max_error_)));
    }

  private:
    HWY_INLINE centred_terms products(doubles x, doubles q) const {
        const doubles product = hn::Mul(scale_, q);
        const doubles d = hn::Add(wide_offset_, product);
        // d - x without the cancellation of a large offset: see error_of in block_kernel.cpp.
        const doubles difference = hn::Sub(x, wide_offset_);
        const doubles x_part = hn::Add(difference, wide_offset_);
        const doubles rest =
            hn::Sub(hn::Sub(x, x_part), hn::Sub(wide_offset_, hn::Sub(x_part, difference)));
        const doubles e = hn::Sub(hn::Sub(product, difference), rest);
        return {hn::Mul(e, e), hn::Mul(x, x), hn::Mul(x, d), hn::Mul(d, d), e, hn::Abs(e)};
    }

    // error2 to its parts, by factors 0 and 1.
    static HWY_INLINE parted_terms parted(const centred_terms& t, doubles clamped,
                                          doubles vanished) {
        const doubles clamp = hn::Mul(t.error2, clamped);
        const doubles underflow = hn::Mul(t.error2, vanished);
        const doubles grid = hn::Sub(hn::Sub(t.error2, clamp), underflow);
        return {t.error2, t.x2, t.xd, t.d2, t.error, t.max_error, clamp, underflow, grid};
    }

    floats reciprocal_, offset_;
    doubles scale_, wide_offset_, max_error_;
};

template <bool fixed, rounding_kind kind, std::size_t chunk, bool with_codes, bool with_parts>
HWY_ATTR void run_centred(const element_grid& g, const block_run& run,
                          const centred_blocks& centred, const block_scales& scales,
                          std::uint8_t* codes, chunk_sums& sums, grid_counts& counts) {
    HWY_ALIGN static constexpr float zeros[chunk] = {};
    HWY_ALIGN std::uint8_t unwanted[chunk];
    HWY_ALIGN double terms[with_parts ? 8 : 5][batch * double_lanes];
    const double_tag dd;
    constexpr std::size_t vectors = chunk / float_lanes;
    const std::size_t per_block = run.stride / chunk;
    const std::size_t chunks = run.blocks * per_block;
    centred_kernel<fixed, kind, with_codes, with_parts> kernel(g);
    std::size_t block = 0;
    std::size_t left = 0;  // chunks of the block
    bool live = false;
    for (std::size_t first = 0; first < chunks; first += batch) {
        for (std::size_t i = 0; i < batch; ++i) {
            const std::size_t at = (first + i) * chunk;
            if (left == 0) {
                left = per_block;
                live = block < run.blocks && scales.slow.data()[block] == 0;
                // A block of zeros without an offset stands in for one that is not done here.
                kernel.set_block(scales.reciprocal.data()[block], scales.scale.data()[block],
                                 live ? centred.offset.data()[block] : 0.0f);
                ++block;
            }
            --left;
            const float* x = live ? run.x + at : zeros;
            const std::uint32_t* draws = nullptr;
            if constexpr (kind == rounding_kind::stochastic) {
                draws = live ? run.draws + at : reinterpret_cast<const std::uint32_t*>(zeros);
            }
            std::uint8_t* to = unwanted;
            if constexpr (with_codes) to = live ? codes + at : unwanted;
            const auto h = kernel.template terms<vectors, 1>(x, draws, to, 0);
            const auto t = joined(h.low, h.high);
            hn::Store(t.error2, dd, terms[0] + i * double_lanes);
            hn::Store(t.x2, dd, terms[1] + i * double_lanes);
            hn::Store(t.xd, dd, terms[2] + i * double_lanes);
            hn::Store(t.d2, dd, terms[3] + i * double_lanes);
            hn::Store(t.error, dd, terms[4] + i * double_lanes);
            if constexpr (with_parts) {
                hn::Store(t.clamp, dd, terms[5] + i * double_lanes);
                hn::Store(t.underflow, dd, terms[6] + i * double_lanes);
                hn::Store(t.grid, dd, terms[7] + i * double_lanes);
            }
            kernel.keep_max(t.max_error);
        }
        fold_double_batch(terms[0], sums.in_x_error2.data() + first);
        fold_double_batch(terms[1], sums.in_x_x2.data() + first);
        fold_double_batch(terms[2], sums.in_x_xd.data() + first);
        fold_double_batch(terms[3], sums.in_x_d2.data() + first);
        fold_double_batch(terms[4], sums.error.data() + first);
        if constexpr (with_parts) {
            fold_double_batch(terms[5], sums.in_x_clamp.data() + first);
            fold_double_batch(terms[6], sums.in_x_underflow.data() + first);
            fold_double_batch(terms[7], sums.in_x_grid.data() + first);
        }
        counts.slots += batch * chunk;
        if (first % (64 * batch) == 0) kernel.flush(counts);
    }
    kernel.finish(counts);
}

// The kernel for chunks of 16, or of 32.
template <bool fixed, rounding_kind kind, bool with_codes>
auto of_chunks(const block_run& run, bool with_parts) {
    if (run.stride < 32) {
        return with_parts ? run_centred<fixed, kind, 16, with_codes, true>
                          : run_centred<fixed, kind, 16, with_codes, false>;
    }
    return with_parts ? run_centred<fixed, kind, 32, with_codes, true>
                      : run_centred<fixed, kind, 32, with_codes, false>;
}

// The smallest and largest element of every block, lane by lane.
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
            // fp16(max/2 + min/2), a zero being +0; the reference has the same.
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
            // What is not finite, or filled up with zeros, is for the reference.
            const std::size_t b = first + i;
            const bool usual = i < count && run.amax.data()[b] < base::f32_infinity &&
                               extent_of(run.place, b).size() == run.stride;
            out.ruled.data()[b] = usual ? ruled : ~0u >> 1;
        }
    }
}

void centred_elements(const element_grid& g, const block_run& run, const centred_blocks& centred,
                      const block_scales& scales, std::uint8_t* codes, chunk_sums& sums,
                      grid_counts& counts) {
    by_grid(g, [&]<bool fixed, rounding_kind kind>() {
        const auto f = codes != nullptr ? of_chunks<fixed, kind, true>(run, sums.with_parts)
                                        : of_chunks<fixed, kind, false>(run, sums.with_parts);
        f(g, run, centred, scales, codes, sums, counts);
    });
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
