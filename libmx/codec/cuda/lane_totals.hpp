// SPDX-License-Identifier: Apache-2.0
// The exact sums of a recipe (block/exact_totals.hpp) as the lanes of a warp compute them: 128 bits
// per sum and lane, in units that suit the current largest values. The few terms outside this range
// are added directly to the digits of the recipe's sums, the others once per segment. All additions
// are of integers, so the order of lanes, warps and atomics does not matter.
#pragma once

#include <cmath>
#include <cstdint>

#include "libmx/base/exact_sum.hpp"
#include "libmx/block/exact_totals.hpp"
#include "libmx/codec/cuda/lane_group.hpp"

namespace mx::codec::cuda {

struct plus {
    template <typename T>
    MX_HD T operator()(const T& a, const T& b) const {
        return a + b;
    }
};
struct larger {
    template <typename T>
    MX_HD T operator()(const T& a, const T& b) const {
        return a < b ? b : a;
    }
};

/// high * 2^64 + low.
struct wide_integer {
    std::uint64_t low;
    std::int64_t high;

    friend MX_HD wide_integer operator+(const wide_integer& a, const wide_integer& b) {
        const std::uint64_t low = a.low + b.low;
        return {low, a.high + b.high + (low < b.low ? 1 : 0)};
    }
};

namespace detail {

// -n if `negative` is set, else n.
MX_HD inline wide_integer with_sign(const wide_integer& n, bool negative) {
    const std::uint64_t flip = negative ? ~std::uint64_t{0} : 0;
    const std::uint64_t low = (n.low ^ flip) - flip;
    const std::uint64_t high = static_cast<std::uint64_t>(n.high) ^ flip;
    return {low, static_cast<std::int64_t>(high + (negative && low == 0 ? 1u : 0u))};
}

// a * b, both below 2^57.
MX_HD inline wide_integer product_of(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t half = 0xffffffffu;
    const std::uint64_t a0 = a & half, a1 = a >> 32, b0 = b & half, b1 = b >> 32;
    const std::uint64_t low = a0 * b0;
    const std::uint64_t middle = a1 * b0 + (low >> 32) + a0 * b1;
    return {middle << 32 | (low & half), static_cast<std::int64_t>(a1 * b1 + (middle >> 32))};
}

}  // namespace detail

/// Adds n * 2^exponent to a sum that other threads update concurrently.
MX_HD_CALL inline void add_together(base::exact_sum& to, const wide_integer& n, int exponent) {
    to.add_uncounted(n.low, n.high, exponent, [](std::int64_t& digit, std::int64_t by) {
#if defined(__CUDA_ARCH__)
        atomicAdd(reinterpret_cast<unsigned long long*>(&digit),
                  static_cast<unsigned long long>(by));
#else
        digit += by;
#endif
    });
}

/// One of the sums.
class lane_sum {
  public:
    /// Values outside the 128 bits go to `all`.
    MX_HD void start(base::exact_sum& all) {
        *this = {};
        all_ = &all;
    }
    /// Sets the unit, 2^unit, of an empty sum.
    MX_HD void count_in(int unit) { unit_ = unit; }

    /// A sum of `value` units.
    MX_HD void start(base::exact_sum& all, const wide_integer& value, int unit) {
        all_ = &all;
        value_ = value;
        unit_ = unit;
    }

    /// Adds n * 2^exponent, |n| < 2^62.
    MX_HD void add(std::int64_t n, int exponent) {
        const int shift = exponent - unit_;
        if (static_cast<unsigned>(shift) > 63u) {
            add_together(*all_, {static_cast<std::uint64_t>(n), n < 0 ? -1 : 0}, exponent);
            return;
        }
        put({static_cast<std::uint64_t>(n) << shift, (n >> 1) >> (63 - shift)});
    }
    /// Adds a finite value.
    MX_HD void add(double value) {
        const std::uint64_t u = base::bits_of(value);
        const int field = static_cast<int>((u >> 52) & 0x7ff);
        std::uint64_t n = u & ((std::uint64_t{1} << 52) - 1);
        if (field != 0) n |= std::uint64_t{1} << 52;
        if (n == 0) return;
        int exponent = (field != 0 ? field : 1) - 1075;
        // Trailing zero bits may lie below the unit.
        const int below = unit_ - exponent;
        if (below > 0 && below < 53 && (n & ((std::uint64_t{1} << below) - 1)) == 0) {
            n >>= below;
            exponent = unit_;
        }
        const auto magnitude = static_cast<std::int64_t>(n);
        add((u >> 63) != 0 ? -magnitude : magnitude, exponent);
    }
    /// Whether a magnitude is a whole number of units and small enough for add_units; writes it to
    /// `n`. The magnitude is m * 2^(exponent - 63), with the top bit of m set, or zero if m is.
    MX_HD bool counts(std::uint64_t m, int exponent, std::uint64_t& n) const {
        n = 0;
        const int place = exponent - unit_;  // of the leading bit
        if (m == 0) return true;
        if (static_cast<unsigned>(place) > 56u || m << (place + 1) != 0) return false;
        n = m >> (63 - place);
        return true;
    }
    /// The same for the magnitude of a finite value, but false for subnormal ones.
    MX_HD bool counts(float value, std::uint64_t& n) const {
        const std::uint32_t u = base::bits_of(value) << 1;
        const auto m = std::uint64_t{u << 7 | (u != 0 ? 0x80000000u : 0u)} << 32;
        constexpr int far_below = -200000;
        return counts(m, u >> 24 != 0 ? static_cast<int>(u >> 24) - 127 : far_below, n);
    }
    MX_HD bool counts(double value, std::uint64_t& n) const {
        const std::uint64_t u = base::bits_of(value) << 1;
        const std::uint64_t m = u << 10 | (u != 0 ? std::uint64_t{1} << 63 : 0);
        return counts(m, static_cast<int>(u >> 53) - 1023, n);
    }
    /// Adds n units. The caller looks at is_full() before the sum reaches 2^122 units.
    MX_HD void add_units(const wide_integer& n) { value_ = value_ + n; }
    MX_HD bool is_full() const { return value_.high < -bound || value_.high >= bound; }
    /// Gives the sum away.
    MX_HD void give_own() {
        give(value_);
        clear();
    }

    MX_HD const wide_integer& value() const { return value_; }
    /// Adds `n` units, the total of all lanes, to the digits.
    MX_HD void give(const wide_integer& n) const { add_together(*all_, n, unit_); }
    MX_HD void clear() { value_ = {}; }

  private:
    // 32 lanes stay within the 128 bits: below 2^121 before an addition, 2^126 together.
    static constexpr std::int64_t bound = std::int64_t{1} << 57;
    MX_HD void put(const wide_integer& n) {
        value_ = value_ + n;
        if (is_full()) give_own();
    }

    wide_integer value_{};
    base::exact_sum* all_ = nullptr;
    int unit_ = 0;
};

/// The sums of a lane; see exact_totals.
template <bool with_parts>
struct lane_totals {
    lane_sum x, x2, d, d2, xd, clamp, underflow;
    int aimed;  ///< see aim(); far below every exponent at first

    /// Adds an element, as exact_totals::add does.
    MX_HD void add(float element, const block::exact_value& value, block::error_part part,
                   bool with_part) {
        const bool adds_part = with_parts && with_part;
        std::uint64_t n, m;
        if (value.offset != 0 || !x.counts(element, n) || !d.counts(value.product, m)) {
            block::add_element(*this, element, value, part, adds_part);
            return;
        }
        // Integers: fewer instructions than the products of floats, and exact.
        const bool x_negative = element < 0, d_negative = value.product < 0;
        x.add_units(detail::with_sign({n, 0}, x_negative));
        d.add_units(detail::with_sign({m, 0}, d_negative));
        x2.add_units(detail::product_of(n, n));
        d2.add_units(detail::product_of(m, m));
        xd.add_units(detail::with_sign(detail::product_of(n, m), x_negative != d_negative));
        // A term is below 2^114 units, one of x or d below 2^57.
        if (x2.is_full() || d2.is_full() || xd.is_full()) {
            x2.give_own();
            d2.give_own();
            xd.give_own();
        }
        if (adds_part) block::add_part(*this, element, value, part);
    }
};

/// For a lane without values, for aim().
inline constexpr int no_exponent = -100000;

/// For aim(): the exponent of a finite float32 magnitude, given as bits.
MX_HD inline int exponent_of(std::uint32_t magnitude) {
    return magnitude == 0 ? no_exponent : static_cast<int>(magnitude >> 23) - 127;
}

namespace detail {

// Numbers below 2^(exponent + 2) are integers in these units if they are multiples of 2^(exponent -
// 51). A product of two takes 106 bits, which leaves 15 for additions.
template <bool with_parts>
MX_HD inline void set_units(lane_totals<with_parts>& t, int exponent) {
    const int unit = exponent - 51;
    t.aimed = exponent;
    t.x.count_in(unit);
    t.d.count_in(unit);
    t.x2.count_in(2 * unit);
    t.d2.count_in(2 * unit);
    t.xd.count_in(2 * unit);
    t.clamp.count_in(2 * unit);
    t.underflow.count_in(2 * unit);
}

// Adds up a sum over the lanes; lane `turn` receives it, and all lanes begin anew.
template <auto which, bool with_parts>
MX_HD inline void add_up(per_lane<lane_totals<with_parts>>& t, int turn, per_lane<lane_sum>& sum,
                         per_lane<wide_integer>& of_all) {
    per_lane<wide_integer> n;
    each([&](int lane) { n[lane] = (t[lane].*which).value(); });
    for (int mask = lane_count / 2; mask > 0; mask /= 2) exchange(n, mask, plus{});
    each([&](int lane) {
        (t[lane].*which).clear();
        if (lane != turn) return;
        sum[lane] = t[lane].*which;
        of_all[lane] = n[lane];
    });
}

}  // namespace detail

/// The empty sums of a lane; the results go to `all`.
template <bool with_parts>
MX_HD inline lane_totals<with_parts> no_totals(block::exact_totals& all) {
    lane_totals<with_parts> t;
    t.x.start(all.x);
    t.x2.start(all.x2);
    t.d.start(all.d);
    t.d2.start(all.d2);
    t.xd.start(all.xd);
    t.clamp.start(all.clamp);
    t.underflow.start(all.underflow);
    detail::set_units(t, no_exponent);
    return t;
}

/// Adds the sums of the lanes of a warp to the recipe's sums.
template <bool with_parts>
MX_HD inline void give_totals(per_lane<lane_totals<with_parts>>& t) {
    using totals = lane_totals<with_parts>;
    if (t[0].aimed == no_exponent) return;  // no lane has values
    per_lane<lane_sum> sum;
    per_lane<wide_integer> of_all;
    detail::add_up<&totals::x>(t, 0, sum, of_all);
    detail::add_up<&totals::x2>(t, 1, sum, of_all);
    detail::add_up<&totals::d>(t, 2, sum, of_all);
    detail::add_up<&totals::d2>(t, 3, sum, of_all);
    detail::add_up<&totals::xd>(t, 4, sum, of_all);
    if constexpr (with_parts) {
        detail::add_up<&totals::clamp>(t, 5, sum, of_all);
        detail::add_up<&totals::underflow>(t, 6, sum, of_all);
    }
    each([&](int lane) {
        if (lane < (with_parts ? 7 : 5)) sum[lane].give(of_all[lane]);
    });
}

/// Chooses the units of the lanes of a warp: `exponent` is that of a lane's largest magnitude, |x|
/// or |d|, up to a factor of four, or no_exponent. Units change only if they no longer suit.
template <bool with_parts>
MX_HD inline void aim(per_lane<lane_totals<with_parts>>& t, const per_lane<int>& exponent) {
    const int most = largest(exponent);
    if (most <= t[0].aimed + 3 && most >= t[0].aimed - 6) return;
    if (most == no_exponent) return;
    give_totals(t);
    each([&](int lane) { detail::set_units(t[lane], most); });
}

}  // namespace mx::codec::cuda
