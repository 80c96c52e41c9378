// SPDX-License-Identifier: Apache-2.0
// scale=search: the code under which a block has the least error, for host and device.
//
// Over the positive finite codes of the scale format within `reach` of the code that the format's
// first rule gives (floor; amax / max rounded to nearest), the sum of (x - S q)^2 or of |x - S q|
// is least, q the exact quotient rounded to nearest; the larger scale where sums are equal. Sums
// are compared as real numbers: in double where they are apart, exactly where they are close.
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
    /// `x` is finite and not all zeros, and p.tensor.decode is positive.
    MX_HD scale_search(const block_params& p, std::span<const float> x) : p_(p), x_(x) {
        const format::element_params& f = p.element;
        to_magic_ = base::exact_pow2(52 - f.mantissa_bits);
        least_power_ = base::exact_pow2(f.emin);
        largest_ = static_cast<double>(p.value[f.max_positive]);
        // The code of the most negative number of an integer format is its own sign bit.
        const bool further = f.max_negative > f.max_positive;
        most_negative_ = further ? largest_ + base::exact_pow2(f.quantum) : largest_;
        const bool power = p.scale_format->power_of_two();
        lowest_ = power ? 0 : 1;
        highest_ = power ? format::e8m0_max : static_cast<int>(p.scale_number.max_positive);
    }

    /// The best code; `first` is the one that the format's first rule gives.
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
        double zeros;    ///< the part of elements that become zero: it grows with the scale
        double clamped;  ///< the part of elements beyond the largest value: it grows the other way
        bool all_zeros, all_clamped;  ///< no element (but zeros) is anything else
    };
    struct candidate {
        int code;
        block_error error;
    };
    /// Sums of 2^20 positive terms are within this of their exact values.
    static constexpr double accuracy = 0x1p-30;

    MX_HD double scale_of(int code) const {
        const float block =
            p_.scale_format->power_of_two()
                ? base::exact_pow2f(code - format::e8m0_bias)
                : format::decode_scale(*p_.scale_format, static_cast<unsigned>(code));
        return static_cast<double>(block) * static_cast<double>(p_.tensor.decode);
    }

    MX_HD double limit_of(float v) const { return v < 0 ? most_negative_ : largest_; }

    /// The number of the grid that is nearest to y >= 0, whatever its range.
    MX_HD double nearest(double y) const {
        double power = least_power_;
        if (p_.element.floating) {
            constexpr std::uint64_t exponent_field = std::uint64_t{0x7ff} << 52;
            power = std::max(power, base::double_from_bits(base::bits_of(y) & exponent_field));
        }
        const double magic = power * to_magic_;
        return (y + magic) - magic;
    }

    /// In double: a quotient next to the middle of two numbers may go to either, whose errors
    /// are nearly the same.
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

    /// Adds the exact error under `code`, or takes it away.
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
            // The quotient of a number of 24 bits and one of 32 is never so near to the middle of
            // two numbers that rounding it to double moves it there.
            const double d = s * std::min(nearest(std::min(x / s, 2 * limit)), limit);
            // d - x without a rounding error (Knuth's TwoSum): high + low.
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

    /// Whether `c` has less error than the best code so far, or as much and a larger scale.
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

    /// Whether no code beyond one with that part of the error can be best.
    MX_HD bool hopeless(double part) const {
        return part * (1 - accuracy) > best_.error.total * (1 + accuracy);
    }

    MX_HD void look_down(int first) {
        bool done = best_.error.all_clamped;
        for (int code = first - 1; code >= lowest_ && !done; --code) {
            const candidate c{code, error_under(code)};
            consider(c);
            // Elements that are clamped are clamped under smaller scales as well, and further off.
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
