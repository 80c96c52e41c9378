// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/number.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>

#include <algorithm>
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

rational power_of_two(int e) {
    const mp::cpp_int p = mp::cpp_int(1) << std::abs(e);
    return e >= 0 ? rational(p) : rational(mp::cpp_int(1), p);
}

integer ticks_of_power(int e) { return integer(1) << (e - tick_exponent); }

integer ticks_of(float x) {
    // x = n * 2^(e - 24) with |n| < 2^24. For a subnormal, trailing zeros of n are removed first,
    // since 2^(e - 24) may be less than a tick.
    int e = 0;
    const auto n = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &e), 24));
    const int shift = e - 24 - tick_exponent;
    return shift >= 0 ? integer(n) << shift : integer(n) / (integer(1) << -shift);
}

rational value_of_ticks(const integer& ticks) {
    return rational(mp::cpp_int(ticks)) * power_of_two(tick_exponent);
}

rational exact(float x) { return value_of_ticks(ticks_of(x)); }

int floor_log2(const integer& a, const integer& b) {
    // 2^k * b <= a < 2^(k+1) * b; the bit lengths give k or k + 1.
    const int k = static_cast<int>(mp::msb(a)) - static_cast<int>(mp::msb(b));
    const bool fits = k >= 0 ? (b << k) <= a : b <= (a << -k);
    return fits ? k : k - 1;
}

int ceil_log2(const integer& a, const integer& b) {
    const int k = floor_log2(a, b);
    const bool reached = k >= 0 ? (b << k) == a : b == (a << -k);
    return reached ? k : k + 1;
}

int nearest_log2(const integer& a, const integer& b) {
    // floor(log2 v + 1/2) = floor((floor(log2 v^2) + 1) / 2), since the outer floor changes only
    // where the inner one does.
    const int twice = floor_log2(a * a, b * b) + 1;
    return twice >= 0 ? twice / 2 : -((1 - twice) / 2);
}

integer nearest_even(const integer& ticks, int precision, int least_exponent) {
    if (ticks == 0) return 0;
    const integer magnitude = mp::abs(ticks);
    const int top = static_cast<int>(mp::msb(magnitude)) + tick_exponent;
    const int quantum = std::max(top - (precision - 1), least_exponent);
    if (quantum <= tick_exponent) return ticks;
    const integer step = ticks_of_power(quantum);
    integer below;
    integer rest;
    mp::divide_qr(magnitude, step, below, rest);
    const integer twice = 2 * rest;
    const bool odd = mp::bit_test(below, 0);
    if (twice > step || (twice == step && odd)) ++below;
    const integer rounded = below * step;
    return ticks < 0 ? integer(-rounded) : rounded;
}

float nearest_f32(const integer& ticks, bool negative_zero) {
    if (ticks == 0) return negative_zero ? -0.0f : 0.0f;
    return nearest(f32, mp::abs(ticks), ticks_of_power(0), ticks < 0);
}

double nearest_f64(const integer& n, int exponent) {
    if (n == 0) return 0;
    const integer rounded = nearest_even(n, 53, tick_exponent);  // the unit does not matter
    const int zeros = static_cast<int>(mp::lsb(mp::abs(rounded)));
    const auto significand = static_cast<std::int64_t>(rounded / (integer(1) << zeros));
    return std::ldexp(static_cast<double>(significand), zeros + exponent);
}

std::uint16_t nearest_half_saturated(float x) {
    const unsigned sign = std::signbit(x) ? 0x8000u : 0u;
    integer rounded = mp::abs(nearest_even(ticks_of(x), 11, -24));
    const integer largest = 65504 * ticks_of_power(0);
    if (rounded > largest) rounded = largest;
    if (rounded == 0) return static_cast<std::uint16_t>(sign);
    const int exponent = std::max(static_cast<int>(mp::msb(rounded)) + tick_exponent, -14);
    const auto significand =
        static_cast<unsigned>(integer(rounded / ticks_of_power(exponent - 10)));  // < 2^11
    // Exponent field 1 means 2^-14; a subnormal lacks the leading bit of the significand.
    const auto field = static_cast<unsigned>(exponent + 14);
    return static_cast<std::uint16_t>(sign | (field * 1024u + significand));
}

float value_of_half(std::uint16_t bits) {
    const unsigned field = bits / 1024u % 32u;
    const unsigned fraction = bits % 1024u;
    const double magnitude = field == 0 ? std::ldexp(static_cast<double>(fraction), -24)
                                        : std::ldexp(static_cast<double>(1024u + fraction),
                                                     static_cast<int>(field) - 25);
    const auto value = static_cast<float>(magnitude);
    return bits >= 0x8000u ? -value : value;
}

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
    if (!std::isfinite(a) || !std::isfinite(b)) return a + b;  // no rounding
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
        // Irrational: there are no ties, and the discarded bits cannot affect the result.
        const mp::cpp_bin_float_50 fraction = ldexp(log2_of_significand(m), fraction_bits);
        scaled += integer(mp::cpp_int(fraction));
    }
    return nearest(kind, mp::abs(scaled), integer(1) << fraction_bits, scaled < 0);
}

}  // namespace mx::oracle
