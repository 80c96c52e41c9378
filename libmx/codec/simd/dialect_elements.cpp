// SPDX-License-Identifier: Apache-2.0
// Elements of dialect blocks (block_scaling.hpp). Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/dialect_elements.cpp"
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

template <bool fixed, quotient_kind kind, rounding_kind how, bool with_codes>
class dialect_kernel : public element_rounder<fixed, how, with_codes> {
  public:
    HWY_INLINE dialect_kernel(const element_grid& g, const dialect_scales& scales)
        : element_rounder<fixed, how, with_codes>(g),
          scales_(scales),
          quotients_(g),
          zero_sign_(g.sign_of_zero),
          negative_(hn::Set(float_tag(), g.max_negative == g.max_positive ? 1.0f : 0.0f)),
          clamped_(hn::Zero(bits_tag())) {}

    HWY_INLINE void set_block(std::size_t block) {
        const float factor = scales_.factor.data()[block];
        quotients_.set_scale(scales_.scale.data()[block], scales_.inverse.data()[block], factor);
        factor_ = hn::Set(float_tag(), factor);
        overflow_from_ = hn::Set(float_tag(), scales_.overflow.data()[block]);
        clamp_from_ = hn::Set(float_tag(), scales_.clamp.data()[block]);
    }

    HWY_INLINE element_vector take(const float* from, const std::uint32_t* draws,
                                   std::uint8_t* codes) {
        const float_tag df;
        const floats x = hn::LoadU(df, from);
        element_vector e;
        e.a = hn::Abs(x);
        e.limit = this->grid_.limit(x);
        e.y = x;
        if constexpr (kind == quotient_kind::exact) {
            words draw = hn::Zero(bits_tag());
            if constexpr (how == rounding_kind::stochastic) draw = hn::LoadU(bits_tag(), draws);
            e.unbounded = quotients_.round(x, draw);
        } else {
            e.y = float_quotient<kind>(x, factor_);
            // `clamp_from_` decides what is beyond the largest value.
            const floats rounded = this->grid_.round(e.y, hn::Abs(e.y), hn::Zero(bits_tag()));
            e.unbounded = hn::Min(rounded, e.limit);
        }
        const floats magnitude = hn::Min(e.unbounded, e.limit);
        floats beyond = e.a;
        if constexpr (fixed) beyond = hn::IfNegativeThenElse(x, hn::Mul(e.a, negative_), e.a);
        count(this->overflow_, hn::Ge(beyond, overflow_from_));
        if constexpr (kind == quotient_kind::exact) {
            e.clamped = hn::Gt(e.unbounded, e.limit);
        } else {
            e.clamped = hn::Ge(e.a, clamp_from_);
            count(clamped_, e.clamped);
        }
        if constexpr (with_codes) this->store_codes(signed_as(e.y, magnitude), magnitude, codes);
        e.q = hn::CopySignToAbs(magnitude, x);
        return e;
    }

    HWY_INLINE void finish(grid_counts& out) {
        element_rounder<fixed, how, with_codes>::finish(out);
        out.clamp += this->total(clamped_);
        clamped_ = hn::Zero(bits_tag());
    }

  private:
    // A number with the sign of the code: that of y, unless the dialect defines another for zeros.
    HWY_INLINE floats signed_as(floats y, floats magnitude) const {
        const floats zero = hn::Zero(float_tag());
        switch (zero_sign_) {
            case zero_sign::plus:
                return hn::IfThenZeroElse(hn::Eq(magnitude, zero), y);
            case zero_sign::input_minus:
                return hn::IfThenElse(hn::Eq(y, zero), hn::Set(float_tag(), -0.0f), y);
            case zero_sign::input_plus:
                return hn::IfThenZeroElse(hn::Eq(y, zero), y);
            case zero_sign::kept:
                break;
        }
        return y;
    }

    const dialect_scales& scales_;
    sure_quotients<fixed, how> quotients_;
    zero_sign zero_sign_;
    floats negative_;  // 0: negative numbers reach further and never overflow (takes_dialect)
    words clamped_;
    floats factor_, overflow_from_, clamp_from_;
};

template <four_over_six by>
HWY_INLINE floats error_term(floats error) {
    return by == four_over_six::mse ? hn::Mul(error, error) : hn::Abs(error);
}
template <four_over_six by>
HWY_INLINE floats with_term(floats terms, floats term) {
    return by == four_over_six::abs_max ? hn::Max(terms, term) : hn::Add(terms, term);
}

// Under both scales many elements become the same number, and largest errors are often theirs. Such
// an error does not decide for the smaller scale, so it is left out under the larger one: that is
// then no better. Only if the number is surely the nearest under the smaller scale, because the
// error must not be less there. Scales have four bits and numbers two, so their products are exact.
template <four_over_six by, std::size_t chunk>
HWY_ATTR void measure_chunks(const element_grid& g, const block_run& run, trial_scales& trials) {
    using fold = std::conditional_t<by == four_over_six::abs_max, max_op, add_op>;
    const float_tag df;
    const grid_vectors<false, rounding_kind::nearest> grid(g);
    HWY_ALIGN float of_six[batch * float_lanes];
    HWY_ALIGN float of_four[batch * float_lanes];
    const std::size_t per_block = run.stride / chunk;
    const std::size_t chunks = run.blocks * per_block;
    struct measured {
        floats y, q, error;
    };
    const auto measure = [&](floats x, floats inverse) HWY_ATTR __attribute__((always_inline)) {
        const floats y = hn::Abs(hn::Mul(x, inverse));
        const floats rounded = grid.round(y, y, hn::Zero(bits_tag()));
        const floats q = hn::Min(rounded, grid.max_positive);
        return measured{y, q, error_term<by>(hn::Sub(q, y))};
    };
    const floats below_half = hn::Set(df, 0x1.fp-25f);  // of a quantum's 2^23 fold
    std::size_t block = 0;
    std::size_t left = 0;  // chunks left in the block
    floats six = hn::Zero(df);
    floats four = six, own_six = six, own_four = six;
    for (std::size_t first = 0; first < chunks; first += batch) {
        const std::size_t count = std::min(batch, chunks - first);
        for (std::size_t i = 0; i < count; ++i) {
            if (left == 0) {
                left = per_block;
                six = hn::Set(df, trials.inverse_six.data()[block]);
                four = hn::Set(df, trials.inverse_four.data()[block]);
                own_six = hn::Set(df, trials.own_six.data()[block]);
                own_four = hn::Set(df, trials.own_four.data()[block]);
                ++block;
            }
            --left;
            floats terms_six = hn::Zero(df);
            floats terms_four = terms_six;
            const float* const from = run.x + (first + i) * chunk;
            for (std::size_t v = 0; v < chunk; v += float_lanes) {
                const floats x = hn::LoadU(df, from + v);
                measured by_six = measure(x, six);
                const measured by_four = measure(x, four);
                if constexpr (by == four_over_six::abs_max) {
                    const auto sure =
                        hn::Lt(by_four.error, hn::Mul(grid.magic(by_four.y), below_half));
                    const auto same =
                        hn::Eq(hn::Mul(by_six.q, own_six), hn::Mul(by_four.q, own_four));
                    by_six.error = hn::IfThenZeroElse(hn::And(sure, same), by_six.error);
                }
                terms_six = with_term<by>(terms_six, by_six.error);
                terms_four = with_term<by>(terms_four, by_four.error);
            }
            hn::Store(terms_six, df, of_six + i * float_lanes);
            hn::Store(terms_four, df, of_four + i * float_lanes);
        }
        fold_batch<fold>(df, of_six, trials.error_six.data() + first);
        fold_batch<fold>(df, of_four, trials.error_four.data() + first);
    }
}

// Adds up, or takes the largest of, the errors of a block's chunks.
template <four_over_six by>
void join_chunks(const block_run& run, float* errors) {
    const std::size_t per_block = run.stride < 32 ? 1 : run.stride / 32;
    if (per_block == 1) return;
    for (std::size_t b = 0; b < run.blocks; ++b) {
        const float* const from = errors + b * per_block;
        double all = 0;
        for (std::size_t c = 0; c < per_block; ++c) {
            const auto one = static_cast<double>(from[c]);
            all = by == four_over_six::abs_max ? std::max(all, one) : all + one;
        }
        errors[b] = static_cast<float>(all);
    }
}

// In units of the larger scale. y is off by at most 2^-23 of itself, and an error by three times
// that. A sum of squares is off by at most twice the sum of the errors times those, and 2 e y <= 16
// e^2 + y^2 / 16; the margins are several times as large. Float32 holds scales whose inverses are
// normal numbers; zeros and infinities fail the comparison.
template <four_over_six by>
HWY_ATTR void take_smaller_errors(const block_run& run, trial_scales& trials) {
    const float_tag df;
    const hn::Rebind<std::uint8_t, bits_tag> bytes;
    constexpr bool squares = by == four_over_six::mse;
    const double n = by == four_over_six::abs_max ? 1.0 : static_cast<double>(run.stride);
    const floats share = hn::Set(df, static_cast<float>(squares ? 0x1p-23 * n : 0x1p-20 * n));
    const floats relative = hn::Set(df, 0x1p-15f), least = hn::Set(df, 0x1p-126f);
    const words one = hn::Set(bits_tag(), 1), two = hn::Set(bits_tag(), 2);
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        const floats to_six = hn::LoadU(df, trials.inverse_six.data() + b);
        const floats to_four = hn::LoadU(df, trials.inverse_four.data() + b);
        const floats ratio = hn::Div(to_six, to_four);
        const floats amax =
            hn::Mul(hn::BitCast(df, hn::LoadU(bits_tag(), run.amax.data() + b)), to_six);
        const floats six = hn::LoadU(df, trials.error_six.data() + b);
        const floats four = hn::Mul(squares ? hn::Mul(ratio, ratio) : ratio,
                                    hn::LoadU(df, trials.error_four.data() + b));
        const floats size = squares ? hn::Mul(amax, amax) : amax;
        const floats margin = hn::Add(hn::Mul(relative, hn::Add(six, four)), hn::Mul(share, size));
        const auto usual = hn::And(hn::Ge(to_six, least), hn::Ge(to_four, least));
        const auto sure = hn::And(usual, hn::Gt(hn::Abs(hn::Sub(four, six)), margin));
        const words smaller =
            hn::IfThenElseZero(hn::RebindMask(bits_tag(), hn::Lt(four, six)), one);
        const words taken = hn::IfThenElse(hn::RebindMask(bits_tag(), sure), smaller, two);
        hn::StoreU(hn::TruncateTo(bytes, taken), bytes, trials.taken.data() + b);
    }
}

template <four_over_six by>
void compare_by(const element_grid& g, const block_run& run, trial_scales& trials) {
    if (run.stride < 32) {
        measure_chunks<by, 16>(g, run, trials);
    } else {
        measure_chunks<by, 32>(g, run, trials);
    }
    join_chunks<by>(run, trials.error_six.data());
    join_chunks<by>(run, trials.error_four.data());
    take_smaller_errors<by>(run, trials);
}

}  // namespace

void compare_trials(const element_grid& g, four_over_six by, const block_run& run,
                    trial_scales& trials) {
    switch (by) {
        case four_over_six::mse:
            return compare_by<four_over_six::mse>(g, run, trials);
        case four_over_six::mae:
            return compare_by<four_over_six::mae>(g, run, trials);
        case four_over_six::abs_max:
            return compare_by<four_over_six::abs_max>(g, run, trials);
        case four_over_six::none:
            break;
    }
}

void dialect_elements(const element_grid& g, quotient_kind kind, const block_run& run,
                      const dialect_scales& of_dialect, const block_scales& scales,
                      const element_outputs& to, grid_counts& counts) {
    by_quotient(g, kind, [&]<bool fixed, quotient_kind of, rounding_kind how>() {
        if (to.codes != nullptr || to.parts != nullptr) {
            run_kernel<dialect_kernel<fixed, of, how, true>>(run, scales, to, counts, g,
                                                             of_dialect);
        } else {
            run_kernel<dialect_kernel<fixed, of, how, false>>(run, scales, to, counts, g,
                                                              of_dialect);
        }
    });
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
