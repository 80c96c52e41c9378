// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/dialects.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "libmx/oracle/number.hpp"

namespace mx::oracle::fbgemm {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float from_bits(std::uint32_t u) { return std::bit_cast<float>(u); }

// v wrapped to int8.
int int8(int v) { return ((v + 128) % 256 + 256) % 256 - 128; }

// The random bits to add: 23 - m of them.
std::uint32_t noise(const value_list& list, std::uint32_t draw) {
    return draw >> (32 - (23 - list.element->mantissa_bits));
}

// A NaN exponent is cast to the code 0, but the elements are divided by the NaN.
block_scale not_a_number() { return {0, std::numeric_limits<float>::quiet_NaN()}; }

}  // namespace

block_scale scale(const recipe& r, const value_list& list, const block_maximum& m,
                  std::uint32_t draw) {
    if (m.nan) return not_a_number();
    if (std::isinf(m.amax)) return parts::power(125);
    float amax = m.amax == 0 ? 0x1p-126f : m.amax;
    const int mbits = list.element->mantissa_bits;
    if (r.rule == scale_rule::even) amax = from_bits(bits(amax) + (1u << (22 - mbits)) - 1);
    if (r.rule == scale_rule::stochastic) amax = from_bits(bits(amax) + noise(list, draw));
    if (std::isnan(amax)) return not_a_number();
    int exponent = 0;
    switch (r.rule) {
        case scale_rule::nearest:
            exponent = static_cast<int>(std::floor(add(f32, log2_in(f32, amax), 0.5f)));
            break;
        case scale_rule::ceil:
            exponent = parts::ceil_log2_f32(amax);
            break;
        default:
            exponent = parts::floor_log2_f32(amax);
            break;
    }
    return parts::power(std::clamp(exponent - list.element->exponent_bits, -127, 125));
}

element convert(const recipe& r, const value_list& list, float x, const block_scale& s,
                std::uint32_t draw) {
    // The payload and sign of a NaN are unspecified: the positive quiet NaN without payload.
    const float y = divide(f32, x, s.value);
    std::uint32_t a = std::isnan(y) ? 0x7fc00000u : bits(y);
    if (r.round.how == format::rounding::stochastic) a += noise(list, draw);

    const int ebits = list.element->exponent_bits;
    const int significant = list.element->mantissa_bits + 1;
    const bool negative = a >= 0x80000000u;
    const int field = int8(static_cast<int>(a / 0x00800000u % 256u));
    const std::uint32_t trailing = a % 0x00800000u;
    int new_field = int8(int8(field - 127) + list.element->bias);
    const int deeper = std::min(new_field <= 0 ? int8(1 - new_field) : 0, 24);
    const bool f32_subnormal = field == 0;
    const std::uint32_t significand = f32_subnormal ? trailing : trailing + 0x00800000u;
    const int shift = (f32_subnormal ? 23 : 24) + deeper - significant - 1;
    int mantissa =
        int8(static_cast<int>((significand >> (static_cast<unsigned>(shift) % 32u)) % 256u));
    mantissa = int8(mantissa + 1) >> 1;

    const bool overflow = mantissa > (1 << significant) - 1;
    if (overflow && !f32_subnormal) mantissa >>= 1;
    if (new_field <= 0 && mantissa == 2) new_field = 1;
    mantissa &= (1 << (significant - 1)) - 1;
    if (overflow) new_field = int8(new_field + 1);
    const int top = (1 << ebits) - 1;
    if (new_field > top) mantissa = 1;
    new_field = std::clamp(new_field, 0, top);
    const int magnitude = (new_field << (significant - 1)) | mantissa;
    const auto entry = std::ranges::find_if(
        list.values, [&](const listed_value& v) { return v.code == magnitude && v.quanta >= 0; });
    // The table of values contains +0 for the code of -0.
    const float q = std::ldexp(static_cast<float>(entry->quanta), list.quantum_exponent);
    const int sign = negative ? 1 << (ebits + significant - 1) : 0;
    return {magnitude + sign, negative && q != 0 ? -q : q};
}

}  // namespace mx::oracle::fbgemm
