// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/sum_interval.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/exact_sum.hpp"

namespace mx::gemm {
namespace {

constexpr double without_end = std::numeric_limits<double>::infinity();
constexpr double largest_float = std::numeric_limits<float>::max();
constexpr int float_digits = std::numeric_limits<float>::digits;
constexpr int least_float_exponent = -149;

// The exponents of the lowest and the highest bit of a finite value other than zero.
struct bit_range {
    int low, high;
};
bit_range bits_in(double x) {
    int exponent = 0;
    const double fraction = std::frexp(std::abs(x), &exponent);
    const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    return {exponent - 53 + std::countr_zero(significand), exponent - 1};
}

bool is_float(const bit_range& b) {
    return b.low >= least_float_exponent && b.high - b.low < float_digits;
}

// The largest power of two up to x > 0.
double power_below(double x) { return std::ldexp(1.0, std::ilogb(x)); }

// Terms of one sign and their sum, the largest first.
struct same_sign {
    std::vector<double> magnitudes;
    double sum = 0;
    double largest(std::size_t count, double before) const {
        return count <= magnitudes.size() ? before + magnitudes[count - 1] : before;
    }
};

// The finite terms, and what of them the bound depends on.
struct split_terms {
    same_sign positive, negative;
    base::exact_sum exact;
    int lowest_bit = std::numeric_limits<int>::max();
    bool all_floats = true;

    void add(double x) {
        if (x == 0) return;
        same_sign& side = x > 0 ? positive : negative;
        side.magnitudes.push_back(std::abs(x));
        side.sum += std::abs(x);
        exact.add(x);
        const bit_range bits = bits_in(x);
        lowest_bit = std::min(lowest_bit, bits.low);
        all_floats = all_floats && is_float(bits);
    }
    std::size_t count() const { return positive.magnitudes.size() + negative.magnitudes.size(); }
    double sum() const { return positive.sum + negative.sum; }
    double largest_partial() const { return std::max(positive.sum, negative.sum); }
};

// Sum over m from 2 of the largest error of an addition whose result has m terms: at most the m
// largest terms of one sign contribute to its size, and no order has more large additions.
double additions_error(split_terms& t, const sum_class& how, int roundings, double growth) {
    const double unit = std::ldexp(1.0, how.faithful ? 1 - float_digits : -float_digits);
    // Sums of multiples of 2^lowest_bit up to here are floats, so that adding is exact.
    const double exact_to = roundings == 0 ? std::ldexp(1.0, t.lowest_bit + float_digits) : 0.0;
    if (t.largest_partial() <= exact_to) return 0;
    std::ranges::sort(t.positive.magnitudes, std::greater());
    std::ranges::sort(t.negative.magnitudes, std::greater());
    double error = 0, positive = 0, negative = 0;
    for (std::size_t m = 1; m <= t.count(); ++m) {
        positive = t.positive.largest(m, positive);
        negative = t.negative.largest(m, negative);
        const double size = std::max(positive, negative);
        if (m == 1 || size <= exact_to) continue;
        // Scales that multiply a sum move its steps; without them they are those of float32.
        const double most = size * growth;
        error += unit * (how.scalings == 0 ? power_below(most) : most);
    }
    return error;
}

}  // namespace

bool sum_interval::contains(double x) const {
    if (unbounded) return true;
    if (nan || std::isnan(x)) return nan && std::isnan(x);
    return low <= x && x <= high;
}

sum_interval interval_of_sum(std::span<const double> terms, const sum_class& how) {
    split_terms t;
    double special = 0;
    for (const double x : terms) {
        if (std::isfinite(x)) {
            t.add(x);
        } else {
            special += x;
        }
    }
    sum_interval r;
    const double n = static_cast<double>(t.count());
    const int roundings = how.scalings + (t.all_floats ? 0 : 1);
    const double unit = std::ldexp(1.0, how.faithful ? 1 - float_digits : -float_digits);
    // (1 + unit)^(n + roundings), and the rounding of the float64 sums here.
    const double all = (n + roundings) * unit;
    const double growth = (1 + all + all * all) * (1 + n * 0x1p-50);
    r.unbounded = all > 1 || t.largest_partial() * growth > largest_float;
    if (special != 0) {  // NaN included
        r.nan = std::isnan(special);
        r.low = r.high = r.exact = special;
        r.unbounded = r.unbounded && !r.nan;
        return r;
    }
    r.exact = t.exact.value();
    if (r.unbounded) {
        r.low = -without_end;
        r.high = without_end;
        return r;
    }
    double error = additions_error(t, how, roundings, growth);
    // A rounded product is off by a unit of itself, or by a step of the subnormals.
    error += roundings * (unit * t.sum() + n * std::ldexp(1.0, least_float_exponent));
    r.low = r.high = r.exact;
    if (error == 0) return r;
    error = error * growth + t.sum() * 0x1p-50;
    r.low = std::nextafter(r.exact - error, -without_end);
    r.high = std::nextafter(r.exact + error, without_end);
    return r;
}

}  // namespace mx::gemm
