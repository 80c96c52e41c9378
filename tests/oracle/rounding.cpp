// SPDX-License-Identifier: Apache-2.0
// The oracle's rounding on cases worked out by hand.
#include "libmx/oracle/rounding.hpp"

#include <cmath>
#include <string_view>

#include "libmx/oracle/value_list.hpp"
#include "tests/catch.hpp"

namespace {

using mx::format::rounding;
using mx::format::tie_rule;
using mx::oracle::value_list;

const mx::format::element_format& row(std::string_view name) {
    return *mx::format::find_element_format(name);
}

// q for x without a scale.
double q(std::string_view name, float x, mx::oracle::rounding_choice choice, std::uint32_t draw = 0,
         bool full_range = false) {
    const value_list list = mx::oracle::list_values(row(name), full_range);
    const auto r =
        mx::oracle::round_to(list, mx::oracle::ticks_of(x), mx::oracle::ticks_of_power(0),
                             std::signbit(x), choice, draw);
    const double value = std::ldexp(static_cast<double>(r.quanta), list.quantum_exponent);
    // The code must give the same value.
    CHECK(mx::oracle::decode(row(name), r.code).value() == mx::oracle::rational(value));
    return value;
}

}  // namespace

TEST_CASE("oracle: to nearest, ties to the even code") {
    const mx::oracle::rounding_choice rtne{rounding::rtne, tie_rule::up, 32};
    CHECK(q("e2m1", 0.25f, rtne) == 0);
    CHECK(q("e2m1", 0.75f, rtne) == 1);
    CHECK(q("e2m1", 1.25f, rtne) == 1);
    CHECK(q("e2m1", 1.75f, rtne) == 2);
    CHECK(q("e2m1", 2.5f, rtne) == 2);
    CHECK(q("e2m1", 3.5f, rtne) == 4);
    CHECK(q("e2m1", 5.0f, rtne) == 4);
    CHECK(q("e2m1", 5.0000005f, rtne) == 6);
    CHECK(q("e2m1", -5.0f, rtne) == -4);
    CHECK(q("e2m1", 100.0f, rtne) == 6);
    CHECK(q("e2m1", 0x1p-149f, rtne) == 0);
    CHECK(q("e4m3", 0x1p-10f, rtne) == 0);
    CHECK(q("e4m3", 0x1.8p-9f, rtne) == 0x1p-8);
    CHECK(q("int8", 1.9921875f, rtne) == 1.984375);  // 127.5/64: beyond, saturates
    CHECK(q("int8", -1.9921875f, rtne, 0, true) == -2);
    CHECK(q("int8", -1.9921875f, rtne, 0, false) == -1.984375);
    CHECK(q("int4", 0.125f, rtne) == 0);
    CHECK(q("int4", 0.375f, rtne) == 0.5);
}

TEST_CASE("oracle: directed and away") {
    CHECK(q("e2m1", 2.5f, {rounding::away, {}, 32}) == 3);
    CHECK(q("e2m1", -0.25f, {rounding::away, {}, 32}) == -0.5);
    CHECK(q("e2m1", 0.24f, {rounding::away, {}, 32}) == 0);
    CHECK(q("e2m1", 5.9f, {rounding::zero, {}, 32}) == 4);
    CHECK(q("e2m1", -5.9f, {rounding::zero, {}, 32}) == -4);
    CHECK(q("e2m1", 4.1f, {rounding::up, {}, 32}) == 6);
    CHECK(q("e2m1", -4.1f, {rounding::up, {}, 32}) == -4);
    CHECK(q("e2m1", 0x1p-149f, {rounding::up, {}, 32}) == 0.5);
    CHECK(q("e2m1", -4.1f, {rounding::down, {}, 32}) == -6);
    CHECK(q("e2m1", 4.1f, {rounding::down, {}, 32}) == 4);
    CHECK(q("e2m1", 7.0f, {rounding::zero, {}, 32}) == 6);
}

TEST_CASE("oracle: e3m0 ties go up or to the even code") {
    const mx::oracle::rounding_choice up{rounding::rtne, tie_rule::up, 32};
    const mx::oracle::rounding_choice even{rounding::rtne, tie_rule::even, 32};
    for (const float k : {0.25f, 0.5f, 1.0f, 2.0f, 4.0f, 8.0f}) {
        CAPTURE(k);
        CHECK(q("e3m0", 1.5f * k, up) == 2 * k);
        CHECK(q("e3m0", -1.5f * k, up) == -2 * k);
    }
    CHECK(q("e3m0", 0.125f, up) == 0);
    CHECK(q("e3m0", 0.375f, even) == 0.5);  // codes 1 and 2
    CHECK(q("e3m0", 0.75f, even) == 0.5);   // codes 2 and 3
    CHECK(q("e3m0", 1.5f, even) == 2);
    CHECK(q("e3m0", 0.125f, even) == 0);
    CHECK(q("e3m0", 0.125f, {rounding::away, tie_rule::up, 32}) == 0.25);
}

TEST_CASE("oracle: stochastic rounding is up iff floor(delta 2^k) + r reaches 2^k") {
    // 2.25 is a quarter of the way from 2 to 3; k = 2: rounds up iff r = 3.
    const mx::oracle::rounding_choice two_bits{rounding::stochastic, tie_rule::up, 2};
    CHECK(q("e2m1", 2.25f, two_bits, 0x00000000u) == 2);
    CHECK(q("e2m1", 2.25f, two_bits, 0xbfffffffu) == 2);
    CHECK(q("e2m1", 2.25f, two_bits, 0xc0000000u) == 3);
    CHECK(q("e2m1", -2.25f, two_bits, 0xbfffffffu) == -2);
    CHECK(q("e2m1", -2.25f, two_bits, 0xc0000000u) == -3);
    // Less than 2^-k of the way: never rounds up, even with the largest draw.
    CHECK(q("e2m1", 2.2f, two_bits, 0xffffffffu) == 2);
    const mx::oracle::rounding_choice all_bits{rounding::stochastic, tie_rule::up, 32};
    CHECK(q("e2m1", 0x1p-33f, all_bits, 0xffffffffu) == 0.5);  // delta = 2^-32
    CHECK(q("e2m1", 0x1p-34f, all_bits, 0xffffffffu) == 0);
}

TEST_CASE("oracle: what lies beyond and what saturation changed") {
    const value_list e4m3 = mx::oracle::list_values(row("e4m3"), false);
    const auto at = [&](float x, rounding how) {
        return mx::oracle::round_to(e4m3, mx::oracle::ticks_of(x), mx::oracle::ticks_of_power(0),
                                    std::signbit(x), {how, {}, 32}, 0);
    };
    CHECK_FALSE(at(448.0f, rounding::rtne).beyond);
    CHECK(at(448.0f, rounding::rtne).top);
    CHECK(at(449.0f, rounding::rtne).beyond);
    CHECK_FALSE(at(464.0f, rounding::rtne).clamped);  // the tie rounds to 448, code 126
    CHECK(at(464.0f, rounding::away).clamped);
    CHECK(at(465.0f, rounding::rtne).clamped);
    CHECK_FALSE(at(479.0f, rounding::zero).clamped);
    CHECK(at(480.0f, rounding::zero).clamped);
    CHECK(at(-1e30f, rounding::zero).clamped);
    CHECK(at(440.0f, rounding::rtne).top);
    CHECK_FALSE(at(0.0f, rounding::rtne).top);
    CHECK(at(0x1.8p-7f, rounding::rtne).subnormal);
    CHECK_FALSE(at(0x1p-6f, rounding::rtne).subnormal);
    CHECK_FALSE(at(0x1p-12f, rounding::rtne).subnormal);  // rounds to zero
}

TEST_CASE("oracle: zeros keep their sign where the format has one") {
    const auto code = [](std::string_view name, float x) {
        const value_list list = mx::oracle::list_values(row(name), false);
        return mx::oracle::cast(list, x, {}, 0, true);
    };
    CHECK(code("e2m1", -0.0f) == 8);
    CHECK(code("e2m1", -0.1f) == 8);
    CHECK(code("e4m3", -0x1p-20f) == 0x80);
    CHECK(code("int8", -0.0f) == 0);
}

TEST_CASE("oracle: Inf and NaN without a scale") {
    const value_list e4m3 = mx::oracle::list_values(row("e4m3"), false);
    const value_list e5m2 = mx::oracle::list_values(row("e5m2"), false);
    const value_list e2m1 = mx::oracle::list_values(row("e2m1"), false);
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(mx::oracle::cast(e4m3, inf, {}, 0, true) == 0x7e);
    CHECK(mx::oracle::cast(e4m3, -inf, {}, 0, true) == 0xfe);
    CHECK(mx::oracle::cast(e4m3, inf, {}, 0, false) == 0x7f);
    CHECK(mx::oracle::cast(e4m3, 464.0f, {}, 0, false) == 0x7e);
    CHECK(mx::oracle::cast(e4m3, 465.0f, {}, 0, false) == 0x7f);
    CHECK(mx::oracle::cast(e4m3, nan, {}, 0, true) == 0x7f);
    CHECK(mx::oracle::cast(e5m2, 61440.0f, {}, 0, false) == 0x7c);
    CHECK(mx::oracle::cast(e5m2, 61439.0f, {}, 0, false) == 0x7b);
    CHECK(mx::oracle::cast(e5m2, -inf, {}, 0, false) == 0xfc);
    CHECK(mx::oracle::cast(e2m1, nan, {}, 0, true) == 7);
    CHECK(mx::oracle::cast(e2m1, -inf, {}, 0, true) == 0xf);
    CHECK(mx::oracle::cast_to_e8m0(1.0f, false) == 127);
    CHECK(mx::oracle::cast_to_e8m0(1.0000001f, false) == 128);
    CHECK(mx::oracle::cast_to_e8m0(-1.5f, true) == 127);
    CHECK(mx::oracle::cast_to_e8m0(0.0f, false) == 0);
    CHECK(mx::oracle::cast_to_e8m0(3e38f, false) == 254);
    CHECK(mx::oracle::cast_to_e8m0(inf, false) == 254);
    CHECK(mx::oracle::cast_to_e8m0(nan, true) == 255);
}
