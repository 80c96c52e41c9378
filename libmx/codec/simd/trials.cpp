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
    constexpr std::size_t n = float_lanes;
    const std::size_t last = std::min(n, run.blocks - first) - 1;
    const auto row = [&](std::size_t lane, std::size_t i) HWY_ATTR {
        return hn::LoadU(df, run.x + (first + std::min(lane, last)) * run.stride + i);
    };
    if constexpr (n == 16 || n == 4) {
        // Four rows at a time, and for 16 rows again.
        HWY_ALIGN float quarter[n == 16 ? n * n : 1];
        for (std::size_t i = 0; i < run.stride; i += n) {
            for (std::size_t r = 0; r < n / 4; ++r) {
                constexpr std::size_t next = n / 4;
                float* const out = n == 4 ? to + i * n : quarter + r * 4 * n;
                hn::StoreInterleaved4(row(r, i), row(r + next, i), row(r + 2 * next, i),
                                      row(r + 3 * next, i), df, out);
            }
            for (std::size_t j = 0; n == 16 && j < 4 * n; j += n) {
                const auto part = [&](std::size_t r)
                                      HWY_ATTR { return hn::Load(df, quarter + r * 4 * n + j); };
                hn::StoreInterleaved4(part(0), part(1), part(2), part(3), df, to + i * n + 4 * j);
            }
        }
    } else {
        const int_tag di;
        const ints lane = hn::Min(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(last)));
        const ints at = hn::Mul(lane, hn::Set(di, static_cast<std::int32_t>(run.stride)));
        const float* const from = run.x + first * run.stride;
        for (std::size_t i = 0; i < run.stride; ++i) {
            hn::Store(hn::GatherIndex(df, from + i, at), df, to + i * n);
        }
    }
}

// scale=search over the blocks in the lanes. Errors are float32 numbers in units of the first
// scale. Their uncertainty: y is off by 2^-23 of itself, which adds up to 2^-22 sqrt(E Y) in a sum
// of squares E (Cauchy-Schwarz), where Y is the sum of y^2, and to 2^-23 of the sum of y in a sum
// of magnitudes; the rest is relative, n + 10 roundings. The margins are at least twice that. A
// code is skipped only if a part of its error alone exceeds the best error by far more, or if
// another is at least as good:
//
// Under the scale 2 S the numbers up to the largest one of S are some of those of S, and the next
// is a quantum further. So unless an element is beyond the largest number of S by more than half a
// quantum, 2 S is not better than S.
//
// `exact`: scales are powers of two, so every error is exact. In a floating format an element has
// the same error under most scales, so sums differ in a few terms only: only those are compared.
template <bool squares, bool exact>
class lane_search {
  public:
    HWY_INLINE lane_search(const element_grid& g, const search_plan& plan, const block_run& run,
                           float* x, float* errors)
        : grid_(g),
          plan_(plan),
          stride_(run.stride),
          x_(x),
          errors_(errors),
          whole_most_(hn::MulAdd(grid_.magic(grid_.max_positive), hn::Set(float_tag(), 0x1p-24f),
                                 grid_.max_positive)),
          finest_(hn::Mul(grid_.magic(hn::Zero(float_tag())), hn::Set(float_tag(), 0x1p-23f))),
          last_place_(hn::BitCast(
              float_tag(),
              hn::Set(bits_tag(), static_cast<std::uint32_t>(127 - run.precision) << 23))) {}

    HWY_INLINE void run(ints first, floats amax, floats amin) {
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
        code_ = first_;
        second_ = hn::Set(df, 0x1p100f);
        try_first();
        look_down(active);
        if constexpr (exact) {
            look_up_by_powers(active, hn::Mul(amin, to_first_));
        } else {
            look_up(active);
            const floats margin = margin_of(hn::Add(best_, second_));
            doubtful_ = hn::Or(doubtful_, hn::Not(hn::Gt(hn::Sub(second_, best_), margin)));
        }
    }

    HWY_INLINE void store(std::int32_t* codes, std::uint8_t* doubtful) const {
        hn::StoreU(code_, int_tag(), codes);
        const words one = hn::Set(bits_tag(), 1);
        const words doubt = hn::IfThenElseZero(hn::RebindMask(bits_tag(), doubtful_), one);
        hn::StoreU(hn::TruncateTo(byte_tag(), doubt), byte_tag(), doubtful);
    }

  private:
    static constexpr std::size_t step = 8;  // divides every stride

    // An element's part of the error, alone and added to others.
    static HWY_INLINE floats term(floats e) { return squares ? hn::Mul(e, e) : hn::Abs(e); }
    static HWY_INLINE floats with(floats e, floats sum) {
        return squares ? hn::MulAdd(e, e, sum) : hn::Add(sum, hn::Abs(e));
    }

    // S of a code in units of the first.
    HWY_INLINE floats in_first(ints code) const {
        return hn::Mul(hn::GatherIndex(float_tag(), plan_.scale, usable(code)), to_first_);
    }

    HWY_INLINE floats rounded(floats y) const {
        const floats within = hn::Min(y, grid_.max_positive);
        return grid_.round(within, within, hn::Zero(bits_tag()));
    }

    // The error under the first code, the same sum of the elements, and the parts of the error from
    // elements beyond the largest value under the first and the next lower code. These parts grow
    // as scales become smaller. Leaves magnitudes in x_.
    HWY_INLINE void try_first() {
        const float_tag df;
        const floats zero = hn::Zero(df), most = grid_.max_positive;
        const floats lower_most = hn::Mul(most, in_first(hn::Sub(first_, hn::Set(int_tag(), 1))));
        best_ = size_ = beyond_ = beyond_lower_ = zero;
        for (std::size_t i = 0; i < stride_; ++i) {
            const floats x = hn::Abs(hn::Load(df, x_ + i * float_lanes));
            hn::Store(x, df, x_ + i * float_lanes);
            const floats y = hn::Mul(x, to_first_);
            const floats e = hn::Sub(rounded(y), y);
            best_ = with(e, best_);
            beyond_lower_ = with(hn::Max(hn::Sub(y, lower_most), zero), beyond_lower_);
            if constexpr (exact) {
                beyond_ = with(hn::Max(hn::Sub(y, most), zero), beyond_);
                hn::Store(hn::Abs(e), df, errors_ + i * float_lanes);
            } else {
                size_ = with(y, size_);
            }
        }
    }

    // The part of a code's error from elements beyond the largest value.
    HWY_INLINE floats error_beyond(ints code) const {
        const float_tag df;
        const floats most = hn::Mul(grid_.max_positive, in_first(code));
        floats part = hn::Zero(df);
        for (std::size_t i = 0; i < stride_; ++i) {
            const floats y = hn::Mul(hn::Load(df, x_ + i * float_lanes), to_first_);
            part = with(hn::Max(hn::Sub(y, most), hn::Zero(df)), part);
        }
        return part;
    }

    // The error under a code where errors are not exact, or a part of it if no lane needs more.
    HWY_INLINE floats error_under(ints code, float_mask active) const {
        const float_tag df;
        const floats inverse = hn::GatherIndex(df, plan_.inverse, code);
        // The scale in units of the first, as exact as by another gather, which takes longer.
        const floats unit = term(hn::Div(to_first_, inverse));
        floats all = hn::Zero(df);
        for (std::size_t i = 0; i < stride_;) {
            for (const std::size_t end = i + step; i < end; ++i) {
                const floats y = hn::Mul(hn::Load(df, x_ + i * float_lanes), inverse);
                all = with(hn::Sub(rounded(y), y), all);
            }
            if (hn::AllFalse(df, hn::AndNot(hopeless(hn::Mul(all, unit)), active))) break;
        }
        return hn::Mul(all, unit);
    }

    HWY_INLINE void consider(ints code, floats error, float_mask active) {
        const float_tag df;
        const floats e = hn::IfThenElse(active, error, hn::Set(df, 0x1p100f));
        const auto less = hn::Lt(e, best_);
        second_ = hn::Min(second_, hn::Max(e, best_));
        best_ = hn::Min(e, best_);
        code_ = hn::IfThenElse(hn::RebindMask(int_tag(), less), code, code_);
    }

    // Compares a code with the best one where errors are exact. `gain`: how much less its error can
    // be at most, by elements that are not yet compared; a code that cannot be better any more is
    // not compared further.
    HWY_INLINE void try_power(ints code, floats gain, float_mask active) {
        const float_tag df;
        const floats inverse = hn::GatherIndex(df, plan_.inverse, code);
        const floats scale = in_first(code);
        const floats share = hn::Set(df, static_cast<float>(stride_ + 16) * 0x1p-23f);
        const floats least = hn::Set(df, 0x1p-100f);  // below, float32 is not exact
        // Elements that differ are more than half the least quantum of both codes, and their errors
        // are multiples of their last place: sums of such terms below 2^24 of them are exact.
        const floats place =
            term(hn::Mul(hn::Mul(finest_, in_first(hn::Min(code, code_))), last_place_));
        const floats exact_below = hn::IfThenElseZero(hn::Gt(place, hn::Set(df, 0x1p-90f)),
                                                      hn::Mul(place, hn::Set(df, 0x1p24f)));
        floats sum = hn::Zero(df), size = sum, bound = least;
        for (std::size_t i = 0; i < stride_;) {
            for (const std::size_t end = i + step; i < end; ++i) {
                const floats y = hn::Mul(hn::Load(df, x_ + i * float_lanes), inverse);
                const floats e = hn::Mul(hn::Abs(hn::Sub(rounded(y), y)), scale);
                float* const errors = errors_ + i * float_lanes;
                const floats best = hn::Load(df, errors);
                floats more = hn::Sub(e, best);
                if (squares) more = hn::Mul(more, hn::Add(e, best));
                sum = hn::Add(sum, more);
                size = hn::Add(size, hn::Abs(more));
                hn::Store(e, df, errors + stride_ * float_lanes);
            }
            const floats rounding = hn::IfThenZeroElse(hn::Lt(size, exact_below), size);
            bound = hn::MulAdd(rounding, share, least);
            if (hn::AllFalse(df, hn::AndNot(hn::Gt(sum, hn::Add(gain, bound)), active))) break;
        }
        // Equal errors: the larger scale is taken.
        const auto tied =
            hn::And(hn::Le(hn::Abs(sum), least), hn::Or(hn::Le(size, least), hn::Eq(bound, least)));
        const auto larger = hn::And(tied, floats_of(hn::Gt(code, code_)));
        const auto less = hn::And(active, hn::Or(hn::Lt(sum, hn::Neg(bound)), larger));
        const auto told = hn::Or(hn::Or(tied, less), hn::Gt(sum, bound));
        doubtful_ = hn::Or(doubtful_, hn::AndNot(told, active));
        if (hn::AllFalse(df, less)) return;
        code_ = hn::IfThenElse(hn::RebindMask(int_tag(), less), code, code_);
        floats all = hn::Zero(df);
        for (std::size_t i = 0; i < stride_; ++i) {
            float* const errors = errors_ + i * float_lanes;
            const floats found = hn::Load(df, errors + stride_ * float_lanes);
            all = hn::Add(all, term(found));
            hn::Store(hn::IfThenElse(less, found, hn::Load(df, errors)), df, errors);
        }
        best_ = hn::IfThenElse(less, all, best_);
    }

    HWY_INLINE floats margin_of(floats sums) const {
        const float_tag df;
        const auto set = [&](double v) HWY_ATTR { return hn::Set(df, static_cast<float>(v)); };
        const auto n = static_cast<double>(stride_);
        const floats relative = hn::Mul(sums, set((n + 16) * 0x1p-23));
        if constexpr (!squares) return hn::Add(relative, hn::Mul(size_, set(0x1p-21)));
        const floats root = hn::Sqrt(hn::Mul(sums, size_));
        return hn::Add(relative, hn::MulAdd(root, set(0x1.7p-21), hn::Mul(size_, set(0x1p-42))));
    }

    // Whether no code with at least this part of the error can be best.
    HWY_INLINE float_mask hopeless(floats part) const {
        const float_tag df;
        const floats bound = hn::Add(hn::Mul(best_, hn::Set(df, 1 + 0x1p-8f)), slack_);
        return hn::Gt(hn::Mul(part, hn::Set(df, 1 - 0x1p-8f)), bound);
    }

    static HWY_INLINE float_mask floats_of(hn::Mask<int_tag> lanes) {
        return hn::RebindMask(float_tag(), lanes);
    }
    static HWY_INLINE float_mask between(ints code, ints least, ints most) {
        return floats_of(hn::Not(hn::Or(hn::Lt(code, least), hn::Gt(code, most))));
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
    HWY_INLINE ints usable(ints code) const {
        const int_tag di;
        return hn::Min(hn::Max(code, hn::Set(di, plan_.least_usable)),
                       hn::Set(di, plan_.most_usable));
    }

    HWY_INLINE void look_down(float_mask active) {
        const float_tag df;
        const int_tag di;
        const ints least = hn::Max(at_reach(-1), hn::Set(di, plan_.lowest));
        for (int k = 1;; ++k) {
            const ints code = hn::Sub(first_, hn::Set(di, k));
            active = within(code, least, first_, active);
            active = hn::AndNot(hopeless(k == 1 ? beyond_lower_ : error_beyond(code)), active);
            if (hn::AllFalse(df, active)) return;
            if constexpr (exact) {
                try_power(usable(code), hn::Set(df, 0x1p120f), active);
            } else {
                consider(code, error_under(usable(code), active), active);
            }
        }
    }

    HWY_INLINE void look_up_by_powers(float_mask active, floats y_amin) {
        const float_tag df;
        const int_tag di;
        const ints one = hn::Set(di, 1);
        const ints most = hn::Min(at_reach(1), hn::Set(di, plan_.highest));
        // Under this code and smaller ones every element is at least the least normal number.
        const ints least_exponent = hn::BitCast(di, hn::ShiftRight<23>(grid_.least));
        const ints normal =
            hn::Add(first_, hn::Sub(hn::ShiftRight<23>(hn::BitCast(di, y_amin)), least_exponent));
        const floats beyond = hn::Mul(beyond_, hn::Set(df, 1 + 0x1p-8f));
        for (ints at = first_;;) {
            // Where the grid holds all elements, errors do not become smaller; they remain the same
            // while every element is normal.
            const auto held = whole(y_amax_, at);
            const auto leads = floats_of(hn::Eq(code_, at));
            active = hn::AndNot(hn::AndNot(leads, held), active);
            const ints last = hn::Min(normal, most);
            const auto alike = hn::And(hn::And(active, held), floats_of(hn::Gt(last, at)));
            at = hn::IfThenElse(hn::RebindMask(di, alike), last, at);
            code_ = hn::IfThenElse(hn::RebindMask(di, alike), last, code_);
            doubtful_ = hn::Or(doubtful_, hn::AndNot(usable_of(at), alike));

            at = hn::Add(at, one);
            active = within(at, first_, most, active);
            if (hn::AllFalse(df, active)) return;
            // A smaller scale than the first has other elements beyond its largest value.
            const auto lower = floats_of(hn::Lt(code_, first_));
            const floats gain = hn::IfThenElse(lower, hn::Set(df, 0x1p120f), beyond);
            try_power(usable(at), hn::IfThenZeroElse(hn::AndNot(lower, held), gain), active);
        }
    }

    // Whether the grid of a code holds all elements, as described above.
    HWY_INLINE float_mask whole(floats amax, ints code) const {
        return hn::Le(amax, hn::Mul(whole_most_, in_first(code)));
    }

    // The least code that may be chosen and whose grid surely holds all elements.
    HWY_INLINE ints least_whole(float_mask active, ints least, ints most) const {
        const float_tag df;
        const int_tag di;
        const floats amax = hn::Mul(y_amax_, hn::Set(df, 1 + 0x1p-20f));
        ints start = first_;
        for (int k = 1;; ++k) {
            const ints code = hn::Sub(first_, hn::Set(di, k));
            const auto here = hn::And(active, hn::And(whole(amax, code), usable_of(code)));
            const auto lower = hn::And(here, between(code, least, most));
            if (hn::AllFalse(df, lower)) break;
            start = hn::IfThenElse(hn::RebindMask(di, lower), code, start);
        }
        for (;;) {
            const auto more = hn::And(active, between(start, least, hn::Sub(most, hn::Set(di, 1))));
            const auto higher = hn::AndNot(whole(amax, start), more);
            if (hn::AllFalse(df, higher)) return start;
            const ints next = hn::Add(start, hn::Set(di, 1));
            start = hn::IfThenElse(hn::RebindMask(di, higher), next, start);
        }
    }

    // Of two scales S and 2 S that hold all elements only S is tried here.
    HWY_INLINE void look_up(float_mask active) {
        const float_tag df;
        const int_tag di;
        const ints one = hn::Set(di, 1);
        const ints least = hn::Max(at_reach(-1), hn::Set(di, plan_.lowest));
        const ints most = hn::Min(at_reach(1), hn::Set(di, plan_.highest));
        const ints start = least_whole(active, least, most);
        // Half of a scale is a binade of codes below, from the second binade on; below that it is
        // half the code.
        const ints binade = hn::Set(di, plan_.codes_per_binade);
        const ints second = hn::Add(binade, binade);
        const ints end = hn::Add(hn::Max(start, binade), binade);
        const float_mask all = active;
        for (ints code = hn::Add(first_, one);; code = hn::Add(code, one)) {
            active = within(code, first_, most, hn::And(active, floats_of(hn::Lt(code, end))));
            if (hn::AllFalse(df, active)) break;
            const auto low = hn::Lt(code, second);
            const ints half = hn::IfThenElse(low, hn::ShiftRight<1>(code), hn::Sub(code, binade));
            const auto none = hn::And(low, hn::Eq(hn::And(code, one), one));
            const auto needed = hn::And(active, floats_of(hn::Or(none, hn::Lt(half, start))));
            if (hn::AllFalse(df, needed)) continue;
            consider(code, error_under(usable(code), needed), needed);
        }
        look_at_twice(hn::And(all, floats_of(hn::Not(hn::Lt(code_, start)))), most);
    }

    // Twice the best scale is as good if every element becomes the same number. This must be sure
    // for elements within 2^-21 of themselves.
    HWY_INLINE void look_at_twice(float_mask active, ints most) {
        const float_tag df;
        const auto set = [&](float v) HWY_ATTR { return hn::Set(df, v); };
        const auto doubled = [&](floats y) HWY_ATTR {
            return hn::Mul(rounded(hn::Mul(y, set(0.5f))), set(2));
        };
        for (;;) {
            const ints twice =
                hn::Add(code_, hn::Min(code_, hn::Set(int_tag(), plan_.codes_per_binade)));
            active = within(twice, first_, most, active);
            const floats inverse = hn::GatherIndex(df, plan_.inverse, usable(code_));
            for (std::size_t i = 0; i < stride_; ++i) {
                if (i % (step / 2) == 0 && hn::AllFalse(df, active)) return;
                const floats y = hn::Mul(hn::Load(df, x_ + i * float_lanes), inverse);
                const floats more = hn::Sub(hn::AbsDiff(doubled(y), y), hn::AbsDiff(rounded(y), y));
                active = hn::AndNot(hn::Gt(more, hn::Mul(y, set(0x1p-20f))), active);
            }
            if (hn::AllFalse(df, active)) return;
            auto sure = active;
            for (std::size_t i = 0; i < stride_; ++i) {
                const floats y = hn::Mul(hn::Load(df, x_ + i * float_lanes), inverse);
                const floats less = hn::Mul(y, set(1 - 0x1p-21f)),
                             more = hn::Mul(y, set(1 + 0x1p-21f));
                const floats q = rounded(less);
                sure = hn::And(sure, hn::Eq(q, rounded(more)));
                sure = hn::And(sure, hn::And(hn::Eq(q, doubled(less)), hn::Eq(q, doubled(more))));
            }
            doubtful_ = hn::Or(doubtful_, hn::AndNot(sure, active));
            active = sure;
            code_ = hn::IfThenElse(hn::RebindMask(int_tag(), active), twice, code_);
        }
    }

    nearest_grid grid_;
    const search_plan& plan_;
    std::size_t stride_;
    float* x_;
    float* errors_;  // of the best code, then the last computed ones, in units of the first scale
    const floats whole_most_;  // half a quantum beyond the largest value
    const floats finest_;      // the least quantum of the format
    const floats last_place_;  // of an element, in units of twice its binade
    ints first_, code_;
    floats to_first_, y_amax_, slack_, size_, best_, second_, beyond_, beyond_lower_;
    float_mask doubtful_;
};

template <bool squares, bool exact>
HWY_ATTR void search_blocks(const element_grid& g, const search_plan& plan, const block_run& run,
                            block_trials& trials) {
    HWY_ALIGN float x[largest_tried * float_lanes];
    HWY_ALIGN float errors[exact ? 2 * largest_tried * float_lanes : 1] = {};
    lane_search<squares, exact> search(g, plan, run, x, errors);
    const auto floats_at = [](const std::uint32_t* bits) HWY_ATTR {
        return hn::BitCast(float_tag(), hn::LoadU(bits_tag(), bits));
    };
    for (std::size_t b = 0; b < run.blocks; b += float_lanes) {
        transpose(run, b, x);
        const ints first = hn::LoadU(int_tag(), trials.code.data() + b);
        search.run(first, floats_at(run.amax.data() + b), floats_at(run.amin.data() + b));
        search.store(trials.code.data() + b, trials.doubtful.data() + b);
    }
}

// The error of a block under a scale as dialect te computes it (te_error in dialect_block.hpp).
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
