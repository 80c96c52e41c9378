// SPDX-License-Identifier: Apache-2.0
// The inner loop: elements to codes, counts and chunk sums. One body, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/quantize/simd/elements.cpp"
#include <hwy/cache_control.h>
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
};

// One vector of elements.
struct element_vector {
    floats y, a, unbounded, limit, q;
};

using short_tag = hn::Repartition<std::int16_t, bits_tag>;
using shorts = hn::Vec<short_tag>;

// Counters that are kept apart per lane.
HWY_INLINE void count(words& n, hn::Mask<float_tag> mask) {
    const auto m = hn::RebindMask(bits_tag(), mask);
#if HWY_TARGET == HWY_AVX3
    n.raw = _mm512_mask_add_epi32(n.raw, m.raw, n.raw, _mm512_set1_epi32(1));
#else
    n = hn::Sub(n, hn::VecFromMask(bits_tag(), m));
#endif
}
HWY_INLINE void count(shorts& n, hn::Mask<short_tag> m) {
#if HWY_TARGET == HWY_AVX3
    n.raw = _mm512_mask_add_epi16(n.raw, m.raw, n.raw, _mm512_set1_epi16(1));
#else
    n = hn::Sub(n, hn::VecFromMask(short_tag(), m));
#endif
}

// The larger magnitude.
HWY_INLINE floats max_abs(floats a, floats b) {
#if HWY_TARGET == HWY_AVX3
    return floats{_mm512_range_ps(a.raw, b.raw, 0x0b)};
#else
    return hn::Max(hn::Abs(a), hn::Abs(b));
#endif
}

// The upper halves of two vectors in one. Numbers on an element grid have no lower halves.
HWY_INLINE shorts upper_halves(floats a, floats b) {
    const short_tag ds;
    return hn::OddEven(hn::BitCast(ds, a),
                       hn::BitCast(ds, hn::ShiftRight<16>(hn::BitCast(bits_tag(), b))));
}

template <bool fixed, rounding_kind kind, bool with_codes>
class chunk_kernel {
  public:
    explicit HWY_INLINE chunk_kernel(const element_grid& g)
        : grid_(g),
          sign_shift_(32 - g.bits),
          g_(&g),
          overflow_(hn::Zero(bits_tag())),
          clamp_(hn::Zero(short_tag())),
          top_code_(clamp_),
          zero_(clamp_),
          subnormal_(clamp_),
          max_error_(hn::Zero(float_tag())) {
        const floats limit = hn::Set(float_tag(), g.max_positive);
        neutral_ = hn::Mul(limit, hn::Set(float_tag(), 0.5f));
        limit_ = upper_halves(limit, limit);
        const floats normal = hn::Set(float_tag(), g.smallest_normal);
        normal_ = upper_halves(normal, normal);
    }

    // The block whose chunks follow.
    HWY_INLINE void set_block(float reciprocal, float scale) {
        reciprocal_ = hn::Set(float_tag(), reciprocal);
        scale_ = hn::Set(float_tag(), scale);
    }

    // Vectors i, i + step, i + 2 step, ... of the `vectors` in a chunk, added in the shape of
    // sum_tree.hpp: those farthest apart first.
    template <std::size_t vectors, std::size_t step>
    HWY_INLINE term_sums terms(const float* x, const std::uint32_t* draws, std::uint8_t* codes,
                               std::size_t i) {
        if constexpr (vectors == 1) {
            const element_vector v = round(x, draws, codes);
            count_pair(v.unbounded, neutral_, v.limit, v.limit);
            term_sums t = products(v);
            t.max_error = hn::Abs(t.max_error);
            return t;
        } else if constexpr (2 * step == vectors) {
            const std::size_t p = i * float_lanes;
            const std::size_t r = (i + step) * float_lanes;
            const element_vector v = round(x + p, draws + p, codes + p);
            const element_vector w = round(x + r, draws + r, codes + r);
            count_pair(v.unbounded, w.unbounded, v.limit, w.limit);
            const term_sums a = products(v);
            const term_sums b = products(w);
            return joined(a, b, max_abs(a.max_error, b.max_error));
        } else {
            const term_sums a = terms<vectors, 2 * step>(x, draws, codes, i);
            const term_sums b = terms<vectors, 2 * step>(x, draws, codes, i + step);
            return joined(a, b, hn::Max(a.max_error, b.max_error));
        }
    }

    HWY_INLINE void keep_max(floats max_error) {
        max_error_ = hn::Max(max_error_, hn::Mul(max_error, scale_));
    }

    // Empties the narrow counters; to be called before one of them can have reached 2^15.
    HWY_INLINE void flush(grid_counts& out) {
        out.clamp += drained(clamp_);
        out.top_code += drained(top_code_);
        out.zero += drained(zero_);
        out.subnormal += drained(subnormal_);
    }

    HWY_INLINE void finish(grid_counts& out) {
        flush(out);
        out.overflow += total(overflow_);
        const double most =
            static_cast<double>(hn::GetLane(hn::MaxOfLanes(float_tag(), max_error_)));
        out.max_error = std::max(out.max_error, most);
    }

  private:
    static HWY_INLINE std::uint64_t total(words n) {
        return hn::GetLane(hn::SumOfLanes(bits_tag(), n));
    }
    static HWY_INLINE std::uint64_t drained(shorts& n) {
        const words w = hn::BitCast(bits_tag(), n);
        n = hn::Zero(short_tag());
        return total(hn::Add(hn::And(w, hn::Set(bits_tag(), 0xffffu)), hn::ShiftRight<16>(w)));
    }

    static HWY_INLINE term_sums joined(const term_sums& a, const term_sums& b, floats max_error) {
        return {hn::Add(a.error2, b.error2), hn::Add(a.x2, b.x2), hn::Add(a.xd, b.xd),
                hn::Add(a.d2, b.d2),         max_error,           hn::Add(a.low, b.low),
                hn::Add(a.high, b.high)};
    }

    HWY_INLINE element_vector round(const float* x, const std::uint32_t* draws,
                                    std::uint8_t* codes) {
        const float_tag df;
        element_vector v;
        v.y = hn::Mul(hn::LoadU(df, x), reciprocal_);
        v.a = hn::Abs(v.y);
        words draw = hn::Zero(bits_tag());
        if constexpr (kind == rounding_kind::stochastic) draw = hn::LoadU(bits_tag(), draws);
        v.unbounded = grid_.round(v.y, v.a, draw);
        v.limit = grid_.limit(v.y);
        count(overflow_, hn::Gt(v.a, v.limit));
        const floats magnitude = hn::Min(v.unbounded, v.limit);
        if constexpr (with_codes) store_codes(v.y, magnitude, codes);
        v.q = hn::CopySignToAbs(magnitude, v.y);
        return v;
    }

    HWY_INLINE void count_pair(floats v, floats w, floats v_limit, floats w_limit) {
        const short_tag ds;
        const shorts q = upper_halves(v, w);
        const shorts limit = fixed ? upper_halves(v_limit, w_limit) : limit_;
        count(clamp_, hn::Gt(q, limit));
        count(top_code_, hn::Gt(q, hn::Sub(limit, hn::Set(ds, std::int16_t{1}))));
        count(zero_, hn::Eq(q, hn::Zero(ds)));
        if constexpr (!fixed) count(subnormal_, hn::Gt(normal_, q));
    }

    // The terms of a vector; its error in place of the largest.
    HWY_INLINE term_sums products(const element_vector& v) const {
        const floats e = hn::Sub(v.q, v.y);
        term_sums t;
        t.error2 = hn::Mul(e, e);
        t.x2 = hn::Mul(v.y, v.y);
        t.xd = hn::Mul(v.y, v.q);
        t.d2 = hn::Mul(v.q, v.q);
        t.max_error = e;
        if constexpr (kind == rounding_kind::nearest) {
            t.low = lower(e);
            t.high = upper(e);
        } else {
            t.low = hn::Sub(lower(v.q), lower(v.y));
            t.high = hn::Sub(upper(v.q), upper(v.y));
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
    words overflow_;
    shorts clamp_, top_code_, zero_, subnormal_;
    floats max_error_;
    floats neutral_;         // counts nowhere
    shorts limit_, normal_;  // of the grid, in upper halves
};

// The reduced sums of one batch of chunks on their way.
struct batch_terms {
    HWY_ALIGN float error2[batch * float_lanes];
    HWY_ALIGN float x2[batch * float_lanes];
    HWY_ALIGN float xd[batch * float_lanes];
    HWY_ALIGN float d2[batch * float_lanes];
    HWY_ALIGN double error[batch * double_lanes];
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
    const std::byte* next = run.next;
    const std::size_t next_chunk = next != nullptr ? chunk * run.next_step : 0;
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
            // The next segment's values arrive while this one is worked on.
            for (std::size_t line = 0; line < next_chunk; line += 64) hwy::Prefetch(next + line);
            next += next_chunk;
            std::uint8_t* to = unwanted;
            if constexpr (with_codes) to = live ? codes + at : unwanted;
            const term_sums t = kernel.template terms<vectors, 1>(x, draws, to, 0);
            hn::Store(t.error2, df, terms.error2 + i * float_lanes);
            hn::Store(t.x2, df, terms.x2 + i * float_lanes);
            hn::Store(t.xd, df, terms.xd + i * float_lanes);
            hn::Store(t.d2, df, terms.d2 + i * float_lanes);
            hn::Store(hn::Add(t.low, t.high), double_tag(), terms.error + i * double_lanes);
            kernel.keep_max(t.max_error);
        }
        fold_batch<add_op>(df, terms.error2, sums.error2.data() + first);
        fold_batch<add_op>(df, terms.x2, sums.x2.data() + first);
        fold_batch<add_op>(df, terms.xd, sums.xd.data() + first);
        fold_batch<add_op>(df, terms.d2, sums.d2.data() + first);
        fold_double_batch(terms.error, sums.error.data() + first);
        counts.slots += batch * chunk;
        if (first % (64 * batch) == 0) kernel.flush(counts);
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
