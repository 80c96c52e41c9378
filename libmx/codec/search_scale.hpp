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

class scale_search {
  public:
    /// `x` must be finite and not all zeros, p.tensor.decode positive.
    MX_HD scale_search(const block_params& p, std::span<const float> x) : p_(p), x_(x) {
        const format::element_params& f = p.element;
        to_magic_ = base::exact_pow2(52 - f.mantissa_bits);
        least_power_ = base::exact_pow2(f.emin);
        largest_ = static_cast<double>(p.value[f.max_positive]);
        // In an integer format the code of the most negative number is its sign bit.
        const bool further = f.max_negative > f.max_positive;
        most_negative_ = further ? largest_ + base::exact_pow2(f.quantum) : largest_;
        const bool power = p.scale_format->power_of_two();
        lowest_ = power ? 0 : 1;
        highest_ = power ? format::e8m0_max : static_cast<int>(p.scale_number.max_positive);
    }

    /// The best code; `first` is the code from the format's first rule.
    MX_HD int best(int first) {
        first = std::clamp(first, lowest_, highest_);
        best_ = {first, error_under(first)};
        if (p_.reach != all_codes) {
            lowest_ = std::max(lowest_, first - p_.reach);
            highest_ = std::min(highest_, first + p_.reach);
        }
        if (best_.error.total > 0) look_down(first);
        look_up(first);
        return best_.code;
    }

  private:
    struct block_error {
        double total;    ///< the sum, rounded
        double zeros;    ///< the part from elements that become zero: it grows with the scale
        double clamped;  ///< the part from elements beyond the largest value: it shrinks as the
                         ///< scale grows
        bool all_zeros, all_clamped;  ///< all elements but zeros are such
    };
    struct candidate {
        int code;
        block_error error;
    };
    /// Relative error limit of sums of 2^20 positive terms.
    static constexpr double accuracy = 0x1p-30;

    MX_HD double scale_of(int code) const {
        const float block =
            p_.scale_format->power_of_two()
                ? base::exact_pow2f(code - format::e8m0_bias)
                : format::decode_scale(*p_.scale_format, static_cast<unsigned>(code));
        return static_cast<double>(block) * static_cast<double>(p_.tensor.decode);
    }

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

    /// In double: a quotient next to a midpoint of two numbers may round to either, with nearly the
    /// same error.
    MX_HD_CALL block_error error_under(int code) const {
        const double s = scale_of(code);
        const double inverse = 1.0 / s;
        block_error e{0, 0, 0, true, true};
        for (const float v : x_) {
            const double x = std::abs(static_cast<double>(v));
            const double y = x * inverse;
            const double limit = limit_of(v);
            const double q = y < limit ? nearest(y) : limit;
            const double off = std::abs(x - s * std::min(q, limit));
            const double term = p_.measure == search_measure::mse ? off * off : off;
            e.total += term;
            const bool zero = q == 0;
            const bool clamped = y >= limit;
            if (zero) e.zeros += term;
            if (clamped) e.clamped += term;
            e.all_zeros &= zero;
            e.all_clamped &= clamped || x == 0;
        }
        return e;
    }

    /// Adds the exact error under `code`, or subtracts it.
    MX_HD_CALL void add_exactly(int code, double sign, base::exact_sum& sum) const {
        const double s = scale_of(code);
        const auto add_product = [&](double a, double b) {
            const double product = a * b;
            sum.add(sign * product);
            sum.add(sign * std::fma(a, b, -product));
        };
        for (const float v : x_) {
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
                sum.add(direction * high);
                sum.add(direction * low);
            } else {
                add_product(high, high);
                add_product(2 * high, low);
                add_product(low, low);
            }
        }
    }

    /// Whether `c` has a smaller error than the best code so far, or an equal one and a larger
    /// scale.
    MX_HD bool beats(const candidate& c) const {
        const double a = c.error.total, b = best_.error.total;
        if (std::abs(a - b) > accuracy * (a + b)) return a < b;
        const bool larger = c.code > best_.code;
        if (a == 0 && b == 0) return larger;
        base::exact_sum difference;
        add_exactly(c.code, 1, difference);
        add_exactly(best_.code, -1, difference);
        if (difference.is_negative()) return true;
        if (!larger) return false;
        base::exact_sum other;
        add_exactly(best_.code, 1, other);
        add_exactly(c.code, -1, other);
        return !other.is_negative();
    }

    MX_HD void consider(const candidate& c) {
        if (beats(c)) best_ = c;
    }

    /// Whether no code beyond one with this part of the error can be best.
    MX_HD bool hopeless(double part) const {
        return part * (1 - accuracy) > best_.error.total * (1 + accuracy);
    }

    MX_HD void look_down(int first) {
        bool done = best_.error.all_clamped;
        for (int code = first - 1; code >= lowest_ && !done; --code) {
            const candidate c{code, error_under(code)};
            consider(c);
            // Clamped elements are also clamped under smaller scales, with larger errors.
            done = c.error.all_clamped || hopeless(c.error.clamped);
        }
    }

    MX_HD void look_up(int first) {
        bool done = best_.code == first && best_.error.all_zeros;
        if (done) best_.code = highest_;
        for (int code = first + 1; code <= highest_ && !done; ++code) {
            candidate c{code, error_under(code)};
            // Under larger scales they remain zeros: the error is that of the largest scale.
            if (c.error.all_zeros) c.code = highest_;
            consider(c);
            done = c.error.all_zeros || hopeless(c.error.zeros);
        }
    }

    const block_params& p_;
    std::span<const float> x_;
    double to_magic_, least_power_, largest_, most_negative_;
    int lowest_, highest_;
    candidate best_{};
};

}  // namespace mx::codec
