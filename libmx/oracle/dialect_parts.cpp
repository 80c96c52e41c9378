// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/dialects.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/oracle/number.hpp"
#include "libmx/oracle/value_list.hpp"

namespace mx::oracle::parts {
namespace {

constexpr int beyond_all = 1000;

int whole(float log2) {
    return static_cast<int>(
        std::clamp(log2, static_cast<float>(-beyond_all), static_cast<float>(beyond_all)));
}

float value_of(const value_list& list, std::int64_t quanta) {
    return std::ldexp(static_cast<float>(quanta), list.quantum_exponent);
}

bool has_signed_zero(const value_list& list) {
    return list.element->kind == format::number_kind::floating && list.element->has_sign;
}

unsigned sign_bit(const value_list& list) { return 1u << (code_bits(*list.element) - 1); }

}  // namespace

block_scale power(int exponent) {
    const int e = std::clamp(exponent, -127, 127);
    return {e + 127, power_of_two_in(f32, e)};
}

block_scale nan_scale() { return {255, std::numeric_limits<float>::quiet_NaN()}; }

block_scale exact_scale(const recipe& r, const value_list& list, const block_maximum& m,
                        std::uint32_t draw) {
    if (m.nan) return nan_scale();
    const int code = scale_code(r.rule, list, r.emax, m.amax, draw);
    return code == 255 ? nan_scale() : power(code - 127);
}

float largest(const value_list& list) { return value_of(list, list.greatest); }

int emax(const value_list& list) { return std::ilogb(largest(list)); }

int emax(const recipe& r, const value_list& list) {
    const bool integers = list.element->kind == format::number_kind::fixed;
    if (!integers) return emax(list);
    return r.emax == integer_emax::one ? 1 : 0;
}

element element_of(const value_list& list, float q) {
    if (std::isnan(q)) return {list.nan_code, q};
    if (std::isinf(q)) {
        const int code = list.infinity_code;
        const int sign = std::signbit(q) ? static_cast<int>(sign_bit(list)) : 0;
        return {code < 0 ? -1 : code + sign, q};
    }
    const auto quanta = static_cast<std::int64_t>(std::ldexp(q, -list.quantum_exponent));
    const auto found = std::ranges::find(list.values, quanta, &listed_value::quanta);
    const bool negative_zero = q == 0 && std::signbit(q) && has_signed_zero(list);
    return {found->code + (negative_zero ? static_cast<int>(sign_bit(list)) : 0), q};
}

element rounded_quotient(const recipe& r, const value_list& list, float x, float scale,
                         std::uint32_t draw) {
    return rounded_quotient(r, list, x, scale, 1, draw);
}

element rounded_quotient(const recipe& r, const value_list& list, float x, float a, float b,
                         std::uint32_t draw) {
    const bool negative = std::signbit(x);
    const rounded q = round_to(list, ticks_of(x) * ticks_of_power(0), ticks_of(a) * ticks_of(b),
                               negative, r.round, draw);
    const float value = value_of(list, q.quanta);
    const bool minus_zero = q.quanta == 0 && negative && has_signed_zero(list);
    return {static_cast<int>(q.code), minus_zero ? -0.0f : value};
}

element saturating(const recipe& r, const value_list& list, float x, const block_scale& s,
                   std::uint32_t draw) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    if (std::isnan(x) || std::isnan(s.value)) {
        if (list.nan_code >= 0) return {list.nan_code, nan};
        const bool integers = list.element->kind == format::number_kind::fixed;
        return element_of(list, integers ? 0.0f : largest(list));
    }
    if (std::isinf(x)) return element_of(list, value_of(list, x > 0 ? list.greatest : list.least));
    return rounded_quotient(r, list, x, s.value, draw);
}

int floor_log2_f32(float x) {
    // Only next to a power of two can log2 x round to an integer; float32 values of log2 are at
    // least 2^-17 apart there.
    int e = 0;
    if (std::isfinite(x) && x > 0) {
        const float m = 2 * std::frexp(x, &e);
        if (m > 1.0001f && m < 1.9999f) return e - 1;
    }
    return whole(std::floor(log2_in(f32, x)));
}

int ceil_log2_f32(float x) { return whole(std::ceil(log2_in(f32, x))); }

}  // namespace mx::oracle::parts
