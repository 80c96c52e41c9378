// SPDX-License-Identifier: Apache-2.0
// The inner loop: elements to codes, counts and chunk sums. One body, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/quantize/simd/elements.cpp"
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

// Sums of terms of a chunk, one per lane.
struct term_sums {
    floats error2, x2, xd, d2, max_error;
    doubles low, high;  // of errors: the lower and upper half of the lanes
    floats least, most;
};

template <bool fixed, rounding_kind kind, bool with_codes>
class chunk_kernel {
  public:
    explicit HWY_INLINE chunk_kernel(const element_grid& g)
        : grid_(g),
          sign_shift_(32 - g.bits),
          g_(&g),
          overflow_(hn::Zero(bits_tag())),
          clamp_(overflow_),
          top_code_(overflow_),
          zero_(overflow_),
          subnormal_(overflow_),
          max_error_(hn::Zero(float_tag())) {}

    // The block whose chunks follow.
    HWY_INLINE void set_block(float reciprocal, float scale) {
        reciprocal_ = hn::Set(float_tag(), reciprocal);
        scale_ = hn::Set(float_tag(), scale);
    }

    // Vectors i, i + step, i + 2 step, ... of the `count` in a chunk, added in the shape of
    // sum_tree.hpp: those farthest apart first.
    template <std::size_t count, std::size_t step>
    HWY_INLINE term_sums terms(const float* x, const std::uint32_t* draws, std::uint8_t* codes,
                               std::size_t i) {
        if constexpr (step == count) {
            const std::size_t at = i * float_lanes;
            return vector(x + at, draws + at, codes + at);
        } else {
            const term_sums a = terms<count, 2 * step>(x, draws, codes, i);
            const term_sums b = terms<count, 2 * step>(x, draws, codes, i + step);
            return {hn::Add(a.error2, b.error2),
                    hn::Add(a.x2, b.x2),
                    hn::Add(a.xd, b.xd),
                    hn::Add(a.d2, b.d2),
                    hn::Max(a.max_error, b.max_error),
                    hn::Add(a.low, b.low),
                    hn::Add(a.high, b.high),
                    hn::Min(a.least, b.least),
                    hn::Max(a.most, b.most)};
        }
    }

    HWY_INLINE void keep_max(floats max_error) {
        max_error_ = hn::Max(max_error_, hn::Mul(max_error, scale_));
    }

    HWY_INLINE void finish(grid_counts& out) const {
        out.overflow += total(overflow_);
        out.clamp += total(clamp_);
        out.top_code += total(top_code_);
        out.zero += total(zero_);
        out.subnormal += total(subnormal_);
        const double most =
            static_cast<double>(hn::GetLane(hn::MaxOfLanes(float_tag(), max_error_)));
        out.max_error = std::max(out.max_error, most);
    }

  private:
    static HWY_INLINE std::uint64_t total(words n) {
        return hn::GetLane(hn::SumOfLanes(bits_tag(), n));
    }
    template <class M>
    static HWY_INLINE void count(words& n, M mask) {
        n = hn::Sub(n, hn::VecFromMask(bits_tag(), hn::RebindMask(bits_tag(), mask)));
    }

    HWY_INLINE term_sums vector(const float* x, const std::uint32_t* draws, std::uint8_t* codes) {
        const float_tag df;
        const floats y = hn::Mul(hn::LoadU(df, x), reciprocal_);
        const floats a = hn::Abs(y);
        words draw = hn::Zero(bits_tag());
        if constexpr (kind == rounding_kind::stochastic) draw = hn::LoadU(bits_tag(), draws);
        const floats unbounded = grid_.round(y, a, draw);
        const floats limit = grid_.limit(y);
        count(overflow_, hn::Gt(a, limit));
        count(clamp_, hn::Gt(unbounded, limit));
        count(top_code_, hn::Ge(unbounded, limit));
        count(zero_, hn::Eq(unbounded, hn::Zero(df)));
        if constexpr (!fixed) count(subnormal_, hn::Lt(unbounded, grid_.smallest_normal));
        const floats magnitude = hn::Min(unbounded, limit);
        if constexpr (with_codes) store_codes(y, magnitude, codes);

        const floats q = hn::CopySignToAbs(magnitude, y);
        const floats e = hn::Sub(q, y);
        term_sums t;
        t.error2 = hn::Mul(e, e);
        t.x2 = hn::Mul(y, y);
        t.xd = hn::Mul(y, q);
        t.d2 = hn::Mul(q, q);
        t.max_error = hn::Abs(e);
        if constexpr (kind == rounding_kind::nearest) {
            t.low = lower(e);
            t.high = upper(e);
            t.least = t.most = a;  // not looked at
        } else {
            t.low = hn::Sub(lower(q), lower(y));
            t.high = hn::Sub(upper(q), upper(y));
            const auto is_zero = hn::Eq(a, hn::Zero(df));
            t.least = hn::IfThenElse(is_zero, hn::Set(df, 0x1p100f), magnitude);
            t.most = magnitude;
        }
        return t;
    }

    static HWY_INLINE doubles lower(floats v) {
        return hn::PromoteTo(double_tag(), hn::LowerHalf(half_tag(), v));
    }
    static HWY_INLINE doubles upper(floats v) {
        return hn::PromoteTo(double_tag(), hn::UpperHalf(half_tag(), v));
    }

    HWY_INLINE void store_codes(floats y, floats magnitude, std::uint8_t* to) const {
        const bits_tag du;
        const words sign = hn::And(hn::BitCast(du, y), hn::Set(du, base::f32_sign_mask));
        words code;
        if constexpr (fixed) {
            const floats steps =
                hn::Mul(hn::CopySignToAbs(magnitude, y), hn::Set(float_tag(), g_->inverse_quantum));
            code = hn::And(hn::BitCast(du, hn::ConvertTo(int_tag(), steps)),
                           hn::Set(du, (1u << g_->bits) - 1u));
        } else {
            // With the smallest normal added, a subnormal has its code in the mantissa.
            const auto small = hn::Lt(magnitude, grid_.smallest_normal);
            const floats shifted =
                hn::Add(magnitude, hn::IfThenElseZero(small, grid_.smallest_normal));
            const words base =
                hn::Add(hn::Set(du, g_->code_base),
                        hn::IfThenElseZero(hn::RebindMask(du, small),
                                           hn::Set(du, 1u << (23 - g_->code_shift))));
            code = hn::Sub(hn::ShiftRightSame(hn::BitCast(du, shifted), g_->code_shift), base);
            // A format without subnormals has its zero one binade below the first number.
            code = hn::IfThenZeroElse(hn::RebindMask(du, hn::Eq(magnitude, hn::Zero(float_tag()))),
                                      code);
            code = hn::Or(code, hn::ShiftRightSame(sign, sign_shift_));
        }
        using byte_tag = hn::Rebind<std::uint8_t, bits_tag>;
        hn::StoreU(hn::TruncateTo(byte_tag(), code), byte_tag(), to);
    }

    grid_vectors<fixed, kind> grid_;
    int sign_shift_;
    const element_grid* g_;
    floats reciprocal_, scale_;
    words overflow_, clamp_, top_code_, zero_, subnormal_;
    floats max_error_;
};

// The reduced sums of one batch of chunks on their way.
struct batch_terms {
    HWY_ALIGN float error2[batch * float_lanes];
    HWY_ALIGN float x2[batch * float_lanes];
    HWY_ALIGN float xd[batch * float_lanes];
    HWY_ALIGN float d2[batch * float_lanes];
    HWY_ALIGN double error[batch * double_lanes];
    HWY_ALIGN float least[batch * float_lanes];
    HWY_ALIGN float most[batch * float_lanes];
};

template <bool fixed, rounding_kind kind, std::size_t chunk, bool with_codes>
HWY_ATTR void run_elements(const element_grid& g, const block_run& run, const block_scales& scales,
                           std::uint8_t* codes, chunk_sums& sums, grid_counts& counts) {
    HWY_ALIGN static constexpr float zeros[chunk] = {};
    HWY_ALIGN std::uint8_t unwanted[chunk];
    const float_tag df;
    constexpr std::size_t vectors = chunk / float_lanes;
    const std::size_t per_block = run.stride / chunk;
    const std::size_t chunks = run.blocks * per_block;
    batch_terms terms;
    chunk_kernel<fixed, kind, with_codes> kernel(g);
    std::size_t block = 0;
    std::size_t left = 0;  // chunks of the block
    bool live = false;
    for (std::size_t first = 0; first < chunks; first += batch) {
        for (std::size_t i = 0; i < batch; ++i) {
            const std::size_t at = (first + i) * chunk;
            if (left == 0) {
                left = per_block;
                live = block < run.blocks && scales.slow.data()[block] == 0;
                kernel.set_block(scales.reciprocal.data()[block], scales.scale.data()[block]);
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
            const term_sums t = kernel.template terms<vectors, 1>(x, draws, to, 0);
            hn::Store(t.error2, df, terms.error2 + i * float_lanes);
            hn::Store(t.x2, df, terms.x2 + i * float_lanes);
            hn::Store(t.xd, df, terms.xd + i * float_lanes);
            hn::Store(t.d2, df, terms.d2 + i * float_lanes);
            hn::Store(hn::Add(t.low, t.high), double_tag(), terms.error + i * double_lanes);
            kernel.keep_max(t.max_error);
            if constexpr (kind != rounding_kind::nearest) {
                hn::Store(t.least, df, terms.least + i * float_lanes);
                hn::Store(t.most, df, terms.most + i * float_lanes);
            }
        }
        fold_batch<add_op>(df, terms.error2, sums.error2.data() + first);
        fold_batch<add_op>(df, terms.x2, sums.x2.data() + first);
        fold_batch<add_op>(df, terms.xd, sums.xd.data() + first);
        fold_batch<add_op>(df, terms.d2, sums.d2.data() + first);
        fold_double_batch(terms.error, sums.error.data() + first);
        if constexpr (kind != rounding_kind::nearest) {
            fold_batch<min_op>(df, terms.least, sums.least.data() + first);
            fold_batch<max_op>(df, terms.most, sums.most.data() + first);
        }
        counts.slots += batch * chunk;
    }
    kernel.finish(counts);
}

template <bool fixed, rounding_kind kind>
HWY_ATTR void choose(const element_grid& g, const block_run& run, const block_scales& scales,
                     std::uint8_t* codes, chunk_sums& sums, grid_counts& counts) {
    const bool small = run.stride < 32;
    if (codes != nullptr) {
        if (small) return run_elements<fixed, kind, 16, true>(g, run, scales, codes, sums, counts);
        return run_elements<fixed, kind, 32, true>(g, run, scales, codes, sums, counts);
    }
    if (small) return run_elements<fixed, kind, 16, false>(g, run, scales, codes, sums, counts);
    return run_elements<fixed, kind, 32, false>(g, run, scales, codes, sums, counts);
}

template <bool fixed>
HWY_ATTR void choose(const element_grid& g, const block_run& run, const block_scales& scales,
                     std::uint8_t* codes, chunk_sums& sums, grid_counts& counts) {
    switch (g.rounding) {
        case rounding_kind::nearest:
            return choose<fixed, rounding_kind::nearest>(g, run, scales, codes, sums, counts);
        case rounding_kind::threshold:
            return choose<fixed, rounding_kind::threshold>(g, run, scales, codes, sums, counts);
        case rounding_kind::stochastic:
            return choose<fixed, rounding_kind::stochastic>(g, run, scales, codes, sums, counts);
    }
}

}  // namespace

void elements(const element_grid& g, const block_run& run, const block_scales& scales,
              std::uint8_t* codes, chunk_sums& sums, grid_counts& counts) {
    if (g.fixed) return choose<true>(g, run, scales, codes, sums, counts);
    return choose<false>(g, run, scales, codes, sums, counts);
}

}  // namespace mx::quantize::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
