// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/arithmetic.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

namespace mx::oracle {
namespace {

namespace mp = boost::multiprecision;

integer magnitude_of(float x) { return ticks_of(std::fabs(x)); }

// log2 of a significand in (1, 2), to 50 digits.
mp::cpp_bin_float_50 log2_of_significand(float m) {
    return log(mp::cpp_bin_float_50(m)) / log(mp::cpp_bin_float_50(2));
}

}  // namespace

float nearest(const float_kind& kind, const integer& numerator, const integer& denominator,
              bool negative) {
    const float sign = negative ? -1.0f : 1.0f;
    if (numerator == 0) return std::copysign(0.0f, sign);
    const int top = floor_log2(numerator, denominator);
    const int quantum = std::max(top - (kind.precision - 1), kind.least_exponent);
    const integer a = quantum < 0 ? integer(numerator << -quantum) : numerator;
    const integer b = quantum > 0 ? integer(denominator << quantum) : denominator;
    integer below;
    integer rest;
    mp::divide_qr(a, b, below, rest);
    const integer twice = 2 * rest;
    if (twice > b || (twice == b && mp::bit_test(below, 0))) ++below;
    // At most 24 bits times a power of two not below 2^-149: exact in double.
    const double value = std::ldexp(static_cast<double>(static_cast<std::int64_t>(below)), quantum);
    if (value >= std::ldexp(1.0, kind.end_exponent)) {
        return std::copysign(std::numeric_limits<float>::infinity(), sign);
    }
    return std::copysign(static_cast<float>(value), sign);
}

float add(const float_kind& kind, float a, float b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return a + b;  // nothing is rounded
    const integer sum = ticks_of(a) + ticks_of(b);
    if (sum == 0) return std::signbit(a) && std::signbit(b) ? -0.0f : 0.0f;
    return nearest(kind, mp::abs(sum), ticks_of_power(0), sum < 0);
}

float subtract(const float_kind& kind, float a, float b) { return add(kind, a, -b); }

float multiply(const float_kind& kind, float a, float b) {
    if (!std::isfinite(a) || !std::isfinite(b)) return a * b;
    const integer one = ticks_of_power(0);
    return nearest(kind, magnitude_of(a) * magnitude_of(b), one * one,
                   std::signbit(a) != std::signbit(b));
}

float divide(const float_kind& kind, float a, float b) {
    if (!std::isfinite(a) || !std::isfinite(b) || b == 0) return a / b;
    return nearest(kind, magnitude_of(a), magnitude_of(b), std::signbit(a) != std::signbit(b));
}

float to(const float_kind& kind, float x) {
    if (!std::isfinite(x)) return x;
    return nearest(kind, magnitude_of(x), ticks_of_power(0), std::signbit(x));
}

float power_of_two_in(const float_kind& kind, int e) {
    const int bounded = std::clamp(e, -200, 200);
    const integer one = 1;
    return bounded >= 0 ? nearest(kind, one << bounded, one, false)
                        : nearest(kind, one, one << -bounded, false);
}

float log2_in(const float_kind& kind, float x) {
    if (x == 0) return -std::numeric_limits<float>::infinity();
    if (!std::isfinite(x)) return x;
    int e = 0;
    const float m = 2 * std::frexp(x, &e);  // x = m * 2^(e - 1), 1 <= m < 2
    constexpr int fraction_bits = 150;
    integer scaled = integer(e - 1) * (integer(1) << fraction_bits);
    if (m != 1) {
        // Irrational: no tie can occur, and the bits cut off here decide nothing.
        const mp::cpp_bin_float_50 fraction = ldexp(log2_of_significand(m), fraction_bits);
        scaled += integer(mp::cpp_int(fraction));
    }
    return nearest(kind, mp::abs(scaled), integer(1) << fraction_bits, scaled < 0);
}

}  // namespace mx::oracle
