// SPDX-License-Identifier: Apache-2.0
// Block scales found by trying several. One block per lane, so that nothing is added across lanes.
// Compiled once per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/trials.cpp"
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
using float_mask = hn::Mask<float_tag>;
using nearest_grid = grid_vectors<false, rounding_kind::nearest>;

// Vector i of `to` receives element i of the blocks from `first` on; unused lanes receive a copy.
HWY_INLINE void transpose(const block_run& run, std::size_t first, float* HWY_RESTRICT to) {
    const float_tag df;
    const int_tag di;
    const auto last = static_cast<std::int32_t>(std::min(float_lanes, run.blocks - first) - 1);
    const ints lane = hn::Min(hn::Iota(di, 0), hn::Set(di, last));
    const ints at = hn::Mul(lane, hn::Set(di, static_cast<std::int32_t>(run.stride)));
    const float* const from = run.x + first * run.stride;
    for (std::size_t i = 0; i < run.stride; ++i) {
        hn::Store(hn::GatherIndex(df, from + i, at), df, to + i * float_lanes);
    }
}

// scale=search over the blocks in the lanes. Errors are float32 numbers in units of the first
// scale. Their uncertainty: y is off by 2^-23 of itself, which adds up to 2^-22 sqrt(n E) y in a
// sum of squares E (Cauchy-Schwarz) and to n 2^-23 y in a sum of magnitudes; the rest is relative,
// n + 10 roundings. The margins are at least twice that. A code is skipped only if a part of its
// error alone exceeds the best error by far more.
//
// `exact`: scales are powers of two, so every error is exact. In a floating format an element has
// the same error under most scales, so sums differ in a few terms only: only those are compared.
template <bool squares, bool exact>
class lane_search {
  public:
    HWY_INLINE lane_search(const element_grid& g, const search_plan& plan, std::size_t stride,
                           const float* x, float* errors)
        : grid_(g), plan_(plan), stride_(stride), x_(x), errors_(errors) {}

    HWY_INLINE void run(ints first, floats amax) {
        const float_tag df;
        const int_tag di;
        const float_mask usable = usable_of(first);
        first_ = hn::IfThenElse(hn::RebindMask(di, usable), first, hn::Set(di, plan_.least_usable));
        to_first_ = hn::GatherIndex(df, plan_.inverse, first_);
        y_amax_ = hn::Mul(amax, to_first_);
        const floats size = squares ? hn::Mul(y_amax_, y_amax_) : y_amax_;
        const double share = squares ? 0x1p-23 : 0x1p-20;
        slack_ =
            hn::Mul(size, hn::Set(df, static_cast<float>(share * static_cast<double>(stride_))));
        // Lanes with NaN or Inf fail the comparison; blocks of zeros need no search.
        const auto fit =
            hn::And(hn::Le(y_amax_, hn::Set(df, 0x1p10f)), hn::Gt(y_amax_, hn::Set(df, 0x1p-10f)));
        const auto active = hn::And(usable, fit);
        doubtful_ = hn::Not(active);
        floats zeros;
        difference ignored;
        best_ = error_under(first_, zeros, ignored);
        keep_errors(active);
        code_ = first_;
        second_ = hn::Set(df, 0x1p100f);
        look_down(active);
        look_up(hn::AndNot(hopeless(zeros), active));
        if (exact) return;
        const floats margin = margin_of(hn::Add(best_, second_));
        doubtful_ = hn::Or(doubtful_, hn::Not(hn::Gt(hn::Sub(second_, best_), margin)));
    }

    HWY_INLINE void store(std::int32_t* codes, std::uint8_t* doubtful) const {
        hn::StoreU(code_, int_tag(), codes);
        const words one = hn::Set(bits_tag(), 1);
        const words doubt = hn::IfThenElseZero(hn::RebindMask(bits_tag(), doubtful_), one);
        hn::StoreU(hn::TruncateTo(byte_tag(), doubt), byte_tag(), doubtful);
    }

  private:
    // The difference between the best code and another, where that is exact.
    struct difference {
        floats sum, size;  // of the terms that differ, and of their magnitudes
        float_mask none;   // no term differs
    };

    // `zeros` receives the part from elements that become zero.
    HWY_INLINE floats error_under(ints code, floats& zeros, difference& to_best) const {
        const float_tag df;
        const floats inverse = hn::GatherIndex(df, plan_.inverse, code);
        const floats scale = hn::Mul(hn::GatherIndex(df, plan_.scale, code), to_first_);
        floats all = hn::Zero(df);
        zeros = all;
        to_best = {all, all, hn::Eq(all, all)};
        for (std::size_t i = 0; i < stride_; ++i) {
            const floats y = hn::Abs(hn::Mul(hn::Load(df, x_ + i * float_lanes), inverse));
            const floats within = hn::Min(y, grid_.max_positive);
            const floats q = grid_.round(within, within, hn::Zero(bits_tag()));
            const floats e = hn::Sub(q, y);
            const floats term = squares ? hn::Mul(e, e) : hn::Abs(e);
            all = hn::Add(all, term);
            zeros = hn::Add(zeros, hn::IfThenElseZero(hn::Eq(q, hn::Zero(df)), term));
            if constexpr (exact) {
                const floats in_first = hn::Mul(hn::Abs(e), scale);
                float* const errors = errors_ + i * float_lanes;
                const floats best = hn::Load(df, errors);
                const auto same = hn::Eq(in_first, best);
                const floats a = squares ? hn::Mul(in_first, in_first) : in_first;
                const floats b = squares ? hn::Mul(best, best) : best;
                to_best.none = hn::And(to_best.none, same);
                to_best.sum = hn::Add(to_best.sum, hn::Sub(a, b));
                to_best.size = hn::Add(to_best.size, hn::IfThenZeroElse(same, hn::Add(a, b)));
                hn::Store(in_first, df, errors + stride_ * float_lanes);
            }
        }
        const floats unit = squares ? hn::Mul(scale, scale) : scale;
        zeros = hn::Mul(zeros, unit);
        return hn::Mul(all, unit);
    }

    // Marks the last computed errors as those of the best code in these lanes.
    HWY_INLINE void keep_errors(float_mask lanes) {
        const float_tag df;
        if (!exact || hn::AllFalse(df, lanes)) return;
        for (std::size_t i = 0; i < stride_; ++i) {
            float* const errors = errors_ + i * float_lanes;
            const floats found = hn::Load(df, errors + stride_ * float_lanes);
            hn::Store(hn::IfThenElse(lanes, found, hn::Load(df, errors)), df, errors);
        }
    }

    HWY_INLINE floats margin_of(floats sums) const {
        const float_tag df;
        const auto set = [&](double v) HWY_ATTR { return hn::Set(df, static_cast<float>(v)); };
        const auto n = static_cast<double>(stride_);
        const floats relative = hn::Mul(sums, set((n + 16) * 0x1p-23));
        if constexpr (!squares) return hn::Add(relative, hn::Mul(y_amax_, set(n * 0x1p-21)));
        const floats size = hn::Mul(y_amax_, hn::Sqrt(hn::Mul(sums, set(n))));
        const floats least = hn::Mul(hn::Mul(y_amax_, y_amax_), set(n * 0x1p-42));
        return hn::Add(hn::Add(relative, least), hn::Mul(size, set(0x1p-20)));
    }

    HWY_INLINE void consider(ints code, floats error, const difference& d, float_mask active) {
        const float_tag df;
        const int_tag di;
        auto less = active;
        if constexpr (exact) {
            // Equal errors: the larger scale is taken.
            const auto tied = hn::And(active, d.none);
            code_ = hn::IfThenElse(hn::RebindMask(di, tied), hn::Max(code, code_), code_);
            const float share = static_cast<float>(stride_ + 16) * 0x1p-23f;
            // Sums below float32's normal numbers are not exact.
            const floats bound =
                hn::Add(hn::Mul(d.size, hn::Set(df, share)), hn::Set(df, 0x1p-100f));
            less = hn::And(active, hn::Lt(d.sum, hn::Neg(bound)));
            const auto told = hn::Or(hn::Or(tied, less), hn::Gt(d.sum, bound));
            doubtful_ = hn::Or(doubtful_, hn::AndNot(told, active));
            best_ = hn::IfThenElse(less, error, best_);
            keep_errors(less);
        } else {
            const floats e = hn::IfThenElse(active, error, hn::Set(df, 0x1p100f));
            less = hn::Lt(e, best_);
            second_ = hn::Min(second_, hn::Max(e, best_));
            best_ = hn::Min(e, best_);
        }
        code_ = hn::IfThenElse(hn::RebindMask(di, less), code, code_);
    }

    // Whether no code with at least this part of the error can be best.
    HWY_INLINE float_mask hopeless(floats part) const {
        const float_tag df;
        const floats bound = hn::Add(hn::Mul(best_, hn::Set(df, 1 + 0x1p-8f)), slack_);
        return hn::Gt(hn::Mul(part, hn::Set(df, 1 - 0x1p-8f)), bound);
    }

    static HWY_INLINE float_mask between(ints code, ints least, ints most) {
        return hn::RebindMask(float_tag(),
                              hn::Not(hn::Or(hn::Lt(code, least), hn::Gt(code, most))));
    }
    HWY_INLINE float_mask usable_of(ints code) const {
        const int_tag di;
        return between(code, hn::Set(di, plan_.least_usable), hn::Set(di, plan_.most_usable));
    }
    // Removes lanes without such a code; a lane whose code lies outside the usable range becomes
    // doubtful.
    HWY_INLINE float_mask within(ints code, ints least, ints most, float_mask active) {
        const auto here = hn::And(active, between(code, least, most));
        const auto left = usable_of(code);
        doubtful_ = hn::Or(doubtful_, hn::AndNot(left, here));
        return hn::And(here, left);
    }
    HWY_INLINE ints at_reach(int sign) const {
        return hn::Add(first_, hn::Set(int_tag(), sign * plan_.reach));
    }

    HWY_INLINE void look_down(float_mask active) {
        const float_tag df;
        const int_tag di;
        const ints least = hn::Max(at_reach(-1), hn::Set(di, plan_.lowest));
        for (int k = 1;; ++k) {
            const ints code = hn::Sub(first_, hn::Set(di, k));
            active = within(code, least, first_, active);
            const ints safe = hn::Max(code, hn::Set(di, plan_.least_usable));
            // The largest element, if it is clamped: its error grows as scales become smaller.
            const floats scale = hn::Mul(hn::GatherIndex(df, plan_.scale, safe), to_first_);
            const floats over =
                hn::Max(hn::Sub(y_amax_, hn::Mul(grid_.max_positive, scale)), hn::Zero(df));
            active = hn::AndNot(hopeless(squares ? hn::Mul(over, over) : over), active);
            if (hn::AllFalse(df, active)) return;
            floats zeros;
            difference to_best;
            const floats error = error_under(safe, zeros, to_best);
            consider(code, error, to_best, active);
        }
    }

    HWY_INLINE void look_up(float_mask active) {
        const int_tag di;
        const ints most = hn::Min(at_reach(1), hn::Set(di, plan_.highest));
        for (int k = 1;; ++k) {
            const ints code = hn::Add(first_, hn::Set(di, k));
            active = within(code, first_, most, active);
            if (hn::AllFalse(float_tag(), active)) return;
            const ints safe = hn::Min(code, hn::Set(di, plan_.most_usable));
            floats zeros;
            difference to_best;
            const floats error = error_under(safe, zeros, to_best);
            consider(code, error, to_best, active);
            // Under larger scales they remain zeros.
            active = hn::AndNot(hopeless(zeros), active);
        }
    }

    nearest_grid grid_;
    const search_plan& plan_;
    std::size_t stride_;
    const float* x_;
    float* errors_;  // of the best code, then the last computed ones, in units of the first scale
    ints first_, code_;
    floats to_first_, y_amax_, slack_, best_, second_;
    float_mask doubtful_;
};

template <bool squares, bool exact>
HWY_ATTR void search_blocks(const element_grid& g, const search_plan& plan, const block_run& run,
                            block_trials& trials) {
    HWY_ALIGN float x[largest_tried * float_lanes];
    HWY_ALIGN float errors[exact ? 2 * largest_tried * float_lanes : 1] = {};
    lane_search<squares, exact> search(g, plan, run.stride, x, errors);
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        transpose(run, b, x);
        const ints first = hn::LoadU(int_tag(), trials.code.data() + b);
        search.run(first, hn::BitCast(float_tag(), hn::LoadU(bits_tag(), run.amax.data() + b)));
        search.store(trials.code.data() + b, trials.doubtful.data() + b);
    }
}

// The error of a block under a scale as dialect te computes it (te_error in general_block.hpp).
template <bool squares, bool fp16>
HWY_INLINE floats te_error(const nearest_grid& grid, const te_plan& plan, std::size_t stride,
                           const float* x, floats scale, floats factor) {
    const float_tag df;
    const floats amax = hn::Set(df, plan.amax);
    const floats range = hn::Set(df, plan.range);
    const floats stored = hn::Set(df, plan.stored);
    HWY_ALIGN float sums[te_rows * float_lanes] = {};
    for (std::size_t row = 0; row * plan.cols < stride; ++row) {
        floats sum = hn::Zero(df);
        for (std::size_t i = row * plan.cols; i < std::min(stride, (row + 1) * plan.cols); ++i) {
            const floats v = hn::Load(df, x + i * float_lanes);
            const floats y = hn::Mul(v, factor);
            const floats within = hn::Min(hn::Abs(y), grid.max_positive);
            const floats q = grid.round(within, within, hn::Zero(bits_tag()));
            const floats product = hn::Mul(hn::CopySignToAbs(q, y), scale);
            const floats d = fp16 ? hn::Sub(product, hn::Mul(v, stored))
                                  : hn::Sub(hn::Div(hn::Mul(product, amax), range), v);
            sum = hn::Add(sum, squares ? hn::Mul(d, d) : hn::Abs(d));
        }
        hn::Store(sum, df, sums + row * float_lanes);
    }
    for (std::size_t distance = te_rows / 2; distance > 0; distance /= 2) {
        for (std::size_t row = 0; row < distance; ++row) {
            const floats other = hn::Load(df, sums + (row + distance) * float_lanes);
            hn::Store(hn::Add(hn::Load(df, sums + row * float_lanes), other), df,
                      sums + row * float_lanes);
        }
    }
    return hn::Load(df, sums);
}

template <bool squares, bool fp16>
HWY_ATTR void choose_te(const element_grid& g, const te_plan& plan, const block_run& run,
                        block_trials& trials) {
    HWY_ALIGN float x[largest_tried * float_lanes];
    const float_tag df;
    const nearest_grid grid(g);
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        transpose(run, b, x);
        const auto error = [&](const te_candidates& of) HWY_ATTR {
            return te_error<squares, fp16>(grid, plan, run.stride, x,
                                           hn::LoadU(df, of.scale.data() + b),
                                           hn::LoadU(df, of.factor.data() + b));
        };
        const auto four = hn::Lt(error(trials.four), error(trials.six));
        hn::StoreU(hn::IfThenElseZero(hn::RebindMask(int_tag(), four), hn::Set(int_tag(), 1)),
                   int_tag(), trials.code.data() + b);
    }
}

}  // namespace

void search(const element_grid& g, const search_plan& plan, const block_run& run,
            block_trials& trials) {
    const bool powers = plan.lowest == 0;  // else the first code is zero, which is not a scale
    if (plan.squares) {
        return powers ? search_blocks<true, true>(g, plan, run, trials)
                      : search_blocks<true, false>(g, plan, run, trials);
    }
    powers ? search_blocks<false, true>(g, plan, run, trials)
           : search_blocks<false, false>(g, plan, run, trials);
}

void choose_as_te(const element_grid& g, const te_plan& plan, const block_run& run,
                  block_trials& trials) {
    if (plan.squares) {
        return plan.fp16 ? choose_te<true, true>(g, plan, run, trials)
                         : choose_te<true, false>(g, plan, run, trials);
    }
    plan.fp16 ? choose_te<false, true>(g, plan, run, trials)
              : choose_te<false, false>(g, plan, run, trials);
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
