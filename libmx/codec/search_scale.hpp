// SPDX-License-Identifier: Apache-2.0
// scale=search: the code under which a block has the least error, for host and device.
//
// Minimizes the sum of (x - S q)^2 or of |x - S q|, q being the exact quotient rounded to nearest,
// over the positive finite codes of the scale format within `reach` of the code from the format's
// first rule (floor; amax / max rounded to nearest). Of equal sums the larger scale is taken. Sums
// are compared as real numbers: in double if they clearly differ, exactly if they are close.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "libmx/base/bits.hpp"
#include "libmx/base/exact_sum.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec {

/// The error of some elements of a block under a code, in double: their order does not decide which
/// code is the best.
struct search_error {
    double total = 0;
    double zeros = 0;       ///< the part from elements that become zero: it grows with the scale
    double clamped = 0;     ///< the part from elements beyond the largest value: it shrinks as the
                            ///< scale grows
    bool all_zeros = true;  ///< all elements are such
    bool all_clamped = true;  ///< all elements but zeros are such

    /// Adds the error of other elements.
    MX_HD void merge(const search_error& other) {
        total += other.total;
        zeros += other.zeros;
        clamped += other.clamped;
        all_zeros = all_zeros && other.all_zeros;
        all_clamped = all_clamped && other.all_clamped;
    }
};

/// The errors of single elements.
class element_errors {
  public:
    explicit MX_HD element_errors(const block_params& p) : p_(p) {
        const format::element_params& f = p.element;
        to_magic_ = base::exact_pow2(52 - f.mantissa_bits);
        least_power_ = base::exact_pow2(f.emin);
        largest_ = static_cast<double>(p.value[f.max_positive]);
        // In an integer format the code of the most negative number is its sign bit.
        const bool further = f.max_negative > f.max_positive;
        most_negative_ = further ? largest_ + base::exact_pow2(f.quantum) : largest_;
    }

    /// S under a code.
    MX_HD double scale_of(int code) const {
        const float block =
            p_.scale_format->power_of_two()
                ? base::exact_pow2f(code - format::e8m0_bias)
                : format::decode_scale(*p_.scale_format, static_cast<unsigned>(code));
        return static_cast<double>(block) * static_cast<double>(p_.tensor.decode);
    }

    /// Adds the error of the finite `v` under the scale `s`; `inverse` is 1 / s. In double: a
    /// quotient next to a midpoint of two numbers may round to either, with nearly the same error.
    MX_HD void add(float v, double s, double inverse, search_error& to) const {
        const double x = std::abs(static_cast<double>(v));
        const double y = x * inverse;
        const double limit = limit_of(v);
        const double q = y < limit ? nearest(y) : limit;
        const double off = std::abs(x - s * std::min(q, limit));
        const double term = p_.measure == search_measure::mse ? off * off : off;
        to.total += term;
        const bool zero = q == 0;
        const bool clamped = y >= limit;
        if (zero) to.zeros += term;
        if (clamped) to.clamped += term;
        to.all_zeros &= zero;
        to.all_clamped &= clamped || x == 0;
    }

    /// Adds the exact error of the finite `v` under the scale `s`, times `sign`, to a sum.
    MX_HD_CALL void add_exactly(float v, double s, double sign, base::exact_sum& to) const {
        const auto add_product = [&](double a, double b) {
            const double product = a * b;
            to.add(sign * product);
            to.add(sign * std::fma(a, b, -product));
        };
        const double x = std::abs(static_cast<double>(v));
        const double limit = limit_of(v);
        // The quotient of a 24-bit and a 32-bit number is never so close to a midpoint that
        // rounding to double moves it there.
        const double d = s * std::min(nearest(std::min(x / s, 2 * limit)), limit);
        // d - x without rounding error (Knuth's TwoSum): high + low.
        const double high = d - x;
        const double back = high + x;
        const double low = (d - back) - (x - (back - high));
        if (p_.measure == search_measure::mae) {
            const double direction = high < 0 ? -sign : sign;
            to.add(direction * high);
            to.add(direction * low);
        } else {
            add_product(high, high);
            add_product(2 * high, low);
            add_product(low, low);
        }
    }

  private:
    MX_HD double limit_of(float v) const { return v < 0 ? most_negative_ : largest_; }

    /// The number of the grid nearest to y >= 0, without a limit.
    MX_HD double nearest(double y) const {
        double power = least_power_;
        if (p_.element.floating) {
            constexpr std::uint64_t exponent_field = std::uint64_t{0x7ff} << 52;
            power = std::max(power, base::double_from_bits(base::bits_of(y) & exponent_field));
        }
        const double magic = power * to_magic_;
        return (y + magic) - magic;
    }

    const block_params& p_;
    double to_magic_, least_power_, largest_, most_negative_;
};

/// The codes that a search tries, one after another: downward from the first one, then upward.
class scale_search {
  public:
    scale_search() = default;
    /// `first` is the code from the format's first rule.
    MX_HD scale_search(const block_params& p, int first) {
        const bool power = p.scale_format->power_of_two();
        lowest_ = power ? 0 : 1;
        highest_ = power ? format::e8m0_max : static_cast<int>(p.scale_number.max_positive);
        code_ = first_ = std::clamp(first, lowest_, highest_);
        if (p.reach == all_codes) return;
        lowest_ = std::max(lowest_, first_ - p.reach);
        highest_ = std::min(highest_, first_ + p.reach);
    }

    /// The code to try next; negative once best() is known.
    MX_HD int code() const { return code_; }
    MX_HD bool done() const { return code_ < 0; }
    MX_HD int best() const { return best_.code; }

    /// The code that `e`, the error under code(), is taken to be of. Elements that are all zeros
    /// are zeros under all larger scales: it is the error of the largest one.
    MX_HD int code_of(const search_error& e) const {
        return direction_ > 0 && e.all_zeros ? highest_ : code_;
    }

    /// Whether `e` and the error of the best code so far are too close to be compared in double.
    MX_HD bool close(const search_error& e) const {
        const double a = e.total, b = best_.error.total;
        if (direction_ == 0 || (a == 0 && b == 0)) return false;
        return std::abs(a - b) <= accuracy * (a + b);
    }

    /// Goes on to the next code. `sign` is that of the exact error of code_of(e), less that of
    /// best(); it is read if they are close.
    MX_HD void take(const search_error& e, int sign) {
        const candidate c{code_of(e), e};
        if (direction_ == 0) {
            direction_ = -1;
            best_ = c;
            return go_on(e.all_clamped || !(e.total > 0));
        }
        if (beats(c, sign)) best_ = c;
        // Clamped elements are also clamped under smaller scales, with larger errors.
        go_on(direction_ < 0 ? e.all_clamped || hopeless(e.clamped)
                             : e.all_zeros || hopeless(e.zeros));
    }

  private:
    struct candidate {
        int code;
        search_error error;
    };
    /// Relative error limit of sums of 2^20 positive terms.
    static constexpr double accuracy = 0x1p-30;

    /// Whether `c` has a smaller error than the best code so far, or an equal one and a larger
    /// scale.
    MX_HD bool beats(const candidate& c, int sign) const {
        const double a = c.error.total, b = best_.error.total;
        const bool equal = a == 0 && b == 0;
        if (!equal && !close(c.error)) return a < b;
        return (!equal && sign < 0) || ((equal || sign == 0) && c.code > best_.code);
    }

    /// Whether no code beyond one with this part of the error can be best.
    MX_HD bool hopeless(double part) const {
        return part * (1 - accuracy) > best_.error.total * (1 + accuracy);
    }

    // `enough`: the direction has no better code.
    MX_HD void go_on(bool enough) {
        if (direction_ < 0) {
            if (!enough && code_ > lowest_) {
                --code_;
                return;
            }
            direction_ = 1;
            code_ = first_;
            enough = best_.code == first_ && best_.error.all_zeros;
            if (enough) best_.code = highest_;
        }
        code_ = !enough && code_ < highest_ ? code_ + 1 : -1;
    }

    int lowest_ = 0, highest_ = 0, first_ = 0, code_ = -1;
    int direction_ = 0;
    candidate best_{};
};

/// The best code for the block `x`, which is finite and not all zeros; p.tensor.decode is positive.
inline int searched_code(const block_params& p, std::span<const float> x, int first) {
    const element_errors errors(p);
    scale_search search(p, first);
    while (!search.done()) {
        const double s = errors.scale_of(search.code());
        const double inverse = 1.0 / s;
        search_error e;
        for (const float v : x) errors.add(v, s, inverse, e);
        int sign = 0;
        if (search.close(e)) {
            base::exact_sum difference;
            const double own = errors.scale_of(search.code_of(e));
            const double other = errors.scale_of(search.best());
            for (const float v : x) {
                errors.add_exactly(v, own, 1, difference);
                errors.add_exactly(v, other, -1, difference);
            }
            sign = difference.sign();
        }
        search.take(e, sign);
    }
    return search.best();
}

}  // namespace mx::codec
