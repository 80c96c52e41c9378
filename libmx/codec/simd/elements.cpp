// SPDX-License-Identifier: Apache-2.0
// The inner loop: elements to codes, counts and chunk sums. One body, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/elements.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/counting.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

// Sums of terms of a chunk, one per lane.
struct term_sums {
    floats error2, x2, xd, d2, max_error;
    doubles low, high;  // of errors: the lower and upper half of the lanes
};

// Also the squared errors by part.
struct parted_sums : term_sums {
    floats clamp, underflow, grid;
};

// The larger magnitude.
HWY_INLINE floats max_abs(floats a, floats b) {
#if HWY_TARGET == HWY_AVX3
    return floats{_mm512_range_ps(a.raw, b.raw, 0x0b)};
#else
    return hn::Max(hn::Abs(a), hn::Abs(b));
#endif
}

template <bool fixed, rounding_kind kind, bool with_codes, bool with_x2, bool with_parts>
class chunk_kernel : public element_rounder<fixed, kind, with_codes> {
  public:
    using sums = std::conditional_t<with_parts, parted_sums, term_sums>;

    explicit HWY_INLINE chunk_kernel(const element_grid& g)
        : element_rounder<fixed, kind, with_codes>(g), max_error_(hn::Zero(float_tag())) {}

    // The block whose chunks follow.
    HWY_INLINE void set_block(float reciprocal, float scale) {
        reciprocal_ = hn::Set(float_tag(), reciprocal);
        scale_ = hn::Set(float_tag(), scale);
    }

    // Vectors i, i + step, i + 2 step, ... of the `vectors` in a chunk, added in the shape of
    // chunk_terms.hpp: those farthest apart first.
    template <std::size_t vectors, std::size_t step>
    HWY_INLINE sums terms(const float* x, const std::uint32_t* draws, std::uint8_t* codes,
                          std::size_t i) {
        if constexpr (vectors == 1) {
            const element_vector v = scaled(x, draws, codes);
            this->count_codes(v);
            sums t = products(v);
            t.max_error = hn::Abs(t.max_error);
            return t;
        } else if constexpr (2 * step == vectors) {
            const std::size_t p = i * float_lanes;
            const std::size_t r = (i + step) * float_lanes;
            const element_vector v =
                scaled(x + p, this->draws_from(draws, p), this->codes_from(codes, p));
            const element_vector w =
                scaled(x + r, this->draws_from(draws, r), this->codes_from(codes, r));
            this->count_codes(v, w);
            const sums a = products(v);
            const sums b = products(w);
            return joined(a, b, max_abs(a.max_error, b.max_error));
        } else {
            const sums a = terms<vectors, 2 * step>(x, draws, codes, i);
            const sums b = terms<vectors, 2 * step>(x, draws, codes, i + step);
            return joined(a, b, hn::Max(a.max_error, b.max_error));
        }
    }

    HWY_INLINE void keep_max(floats max_error) {
        max_error_ = hn::Max(max_error_, hn::Mul(max_error, scale_));
    }

    HWY_INLINE void finish(grid_counts& out) {
        element_rounder<fixed, kind, with_codes>::finish(out);
        const double most =
            static_cast<double>(hn::GetLane(hn::MaxOfLanes(float_tag(), max_error_)));
        out.max_error = std::max(out.max_error, most);
    }

  private:
    static HWY_INLINE term_sums joined(const term_sums& a, const term_sums& b, floats max_error) {
        const floats x2 = with_x2 ? hn::Add(a.x2, b.x2) : a.x2;
        return {hn::Add(a.error2, b.error2), x2,        hn::Add(a.xd, b.xd),
                hn::Add(a.d2, b.d2),         max_error, hn::Add(a.low, b.low),
                hn::Add(a.high, b.high)};
    }

    static HWY_INLINE parted_sums joined(const parted_sums& a, const parted_sums& b,
                                         floats max_error) {
        const term_sums& of_a = a;
        const term_sums& of_b = b;
        return {joined(of_a, of_b, max_error), hn::Add(a.clamp, b.clamp),
                hn::Add(a.underflow, b.underflow), hn::Add(a.grid, b.grid)};
    }

    HWY_INLINE element_vector scaled(const float* x, const std::uint32_t* draws,
                                     std::uint8_t* codes) {
        const floats y = hn::Mul(hn::LoadU(float_tag(), x), reciprocal_);
        return this->round(y, draws, codes);
    }

    // The terms of a vector; its error in place of the largest.
    HWY_INLINE sums products(const element_vector& v) const {
        const floats e = hn::Sub(v.q, v.y);
        sums t;
        t.error2 = hn::Mul(e, e);
        t.x2 = with_x2 ? hn::Mul(v.y, v.y) : v.y;
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
        if constexpr (with_parts) {
            // Where y is 0 there is no error, so that q = 0 tells underflow.
            const auto clamped = hn::Gt(v.unbounded, v.limit);
            const auto vanished = hn::Eq(v.unbounded, hn::Zero(float_tag()));
            t.clamp = hn::IfThenElseZero(clamped, t.error2);
            t.underflow = hn::IfThenElseZero(vanished, t.error2);
            t.grid = hn::IfThenZeroElse(hn::Or(clamped, vanished), t.error2);
        }
        return t;
    }

    floats reciprocal_, scale_;
    floats max_error_;
};

// The reduced sums of one batch of chunks on their way.
struct batch_terms {
    HWY_ALIGN float error2[batch * float_lanes];
    HWY_ALIGN float x2[batch * float_lanes];
    HWY_ALIGN float xd[batch * float_lanes];
    HWY_ALIGN float d2[batch * float_lanes];
    HWY_ALIGN double error[batch * double_lanes];
    HWY_ALIGN float clamp[batch * float_lanes];
    HWY_ALIGN float underflow[batch * float_lanes];
    HWY_ALIGN float grid[batch * float_lanes];
};

template <bool fixed, rounding_kind kind, std::size_t chunk, bool with_codes, bool with_x2,
          bool with_parts>
HWY_ATTR void run_elements(const element_grid& g, const block_run& run, const block_scales& scales,
                           std::uint8_t* codes, chunk_sums& sums, grid_counts& counts) {
    HWY_ALIGN static constexpr float zeros[chunk] = {};
    HWY_ALIGN std::uint8_t unwanted[chunk];
    const float_tag df;
    constexpr std::size_t vectors = chunk / float_lanes;
    const std::size_t per_block = run.stride / chunk;
    const std::size_t chunks = run.blocks * per_block;
    batch_terms terms;
    chunk_kernel<fixed, kind, with_codes, with_x2, with_parts> kernel(g);
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
            if constexpr (with_codes) {
                if (live && codes != nullptr) to = codes + at;
            }
            const auto t = kernel.template terms<vectors, 1>(x, draws, to, 0);
            hn::Store(t.error2, df, terms.error2 + i * float_lanes);
            if constexpr (with_x2) hn::Store(t.x2, df, terms.x2 + i * float_lanes);
            hn::Store(t.xd, df, terms.xd + i * float_lanes);
            hn::Store(t.d2, df, terms.d2 + i * float_lanes);
            hn::Store(hn::Add(t.low, t.high), double_tag(), terms.error + i * double_lanes);
            if constexpr (with_parts) {
                hn::Store(t.clamp, df, terms.clamp + i * float_lanes);
                hn::Store(t.underflow, df, terms.underflow + i * float_lanes);
                hn::Store(t.grid, df, terms.grid + i * float_lanes);
            }
            kernel.keep_max(t.max_error);
        }
        fold_batch<add_op>(df, terms.error2, sums.error2.data() + first);
        if constexpr (with_x2) fold_batch<add_op>(df, terms.x2, sums.x2.data() + first);
        fold_batch<add_op>(df, terms.xd, sums.xd.data() + first);
        fold_batch<add_op>(df, terms.d2, sums.d2.data() + first);
        fold_double_batch(terms.error, sums.error.data() + first);
        if constexpr (with_parts) {
            fold_batch<add_op>(df, terms.clamp, sums.clamp_error2.data() + first);
            fold_batch<add_op>(df, terms.underflow, sums.underflow_error2.data() + first);
            fold_batch<add_op>(df, terms.grid, sums.grid_error2.data() + first);
        }
        counts.slots += batch * chunk;
        if (first % (64 * batch) == 0) kernel.flush(counts);
    }
    kernel.finish(counts);
}

// The kernel for chunks of 16, or of 32; `with`: codes, x2, parts.
template <bool fixed, rounding_kind kind, bool... with>
auto of_chunks(const block_run& run) {
    return run.stride < 32 ? run_elements<fixed, kind, 16, with...>
                           : run_elements<fixed, kind, 32, with...>;
}

}  // namespace

void elements(const element_grid& g, const block_run& run, const block_scales& scales,
              std::uint8_t* codes, chunk_sums& sums, grid_counts& counts) {
    by_grid(g, [&]<bool fixed, rounding_kind kind>() {
        // With parts always with codes and x2, which cost little beside the parts.
        const auto f = sums.with_parts    ? of_chunks<fixed, kind, true, true, true>(run)
                       : codes != nullptr ? of_chunks<fixed, kind, true, true, false>(run)
                       : sums.with_x2     ? of_chunks<fixed, kind, false, true, false>(run)
                                          : of_chunks<fixed, kind, false, false, false>(run);
        f(g, run, scales, codes, sums, counts);
    });
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
