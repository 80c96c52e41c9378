// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/number.hpp"

#include <cmath>
#include <limits>

namespace mx::oracle {

namespace mp = boost::multiprecision;

rational power_of_two(int e) {
    const mp::cpp_int p = mp::cpp_int(1) << std::abs(e);
    return e >= 0 ? rational(p) : rational(mp::cpp_int(1), p);
}

integer ticks_of_power(int e) { return integer(1) << (e - tick_exponent); }

integer ticks_of(float x) {
    // x = n * 2^(e - 24) with |n| < 2^24; the ticks of a subnormal's n are counted after its
    // trailing zeros have gone, since 2^(e - 24) itself may lie below a tick.
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
    // floor(log2 v + 1/2) = floor((floor(log2 v^2) + 1) / 2), since the outer floor only steps
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
    const integer rounded = nearest_even(ticks, 24, -149);
    const bool negative = ticks < 0;
    if (rounded == 0) return negative ? -0.0f : 0.0f;
    if (mp::abs(rounded) >= ticks_of_power(128)) {
        const float infinity = std::numeric_limits<float>::infinity();
        return negative ? -infinity : infinity;
    }
    // A multiple of 2^-149 with 24 significant bits: exact as a double, hence as a float.
    const integer significand = mp::abs(rounded) / ticks_of_power(-149);
    const int drop = std::max(0, static_cast<int>(mp::msb(significand)) - 23);
    const auto n = static_cast<std::int64_t>(integer(significand >> drop));
    const auto value = static_cast<float>(std::ldexp(static_cast<double>(n), drop - 149));
    return negative ? -value : value;
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
    // Exponent field 1 holds 2^-14; a subnormal's significand lacks the leading bit instead.
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

}  // namespace mx::oracle
