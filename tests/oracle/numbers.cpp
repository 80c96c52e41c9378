// SPDX-License-Identifier: Apache-2.0
// The oracle's arithmetic: exact float32 values and single roundings.
#include "libmx/oracle/number.hpp"

#include <cmath>
#include <limits>

#include "tests/catch.hpp"

using mx::oracle::integer;
using mx::oracle::ticks_of;
using mx::oracle::ticks_of_power;

TEST_CASE("oracle: float32 values are whole numbers of ticks") {
    CHECK(ticks_of(1.0f) == ticks_of_power(0));
    CHECK(ticks_of(0x1p-149f) == ticks_of_power(-149));
    CHECK(ticks_of(-0x1.8p-126f) == -3 * ticks_of_power(-127));
    CHECK(ticks_of(0x1.fffffcp-127f) == integer(0x7fffff) * ticks_of_power(-149));
    CHECK(ticks_of(0.0f) == 0);
    CHECK(mx::oracle::exact(0.75f) == mx::oracle::rational(3, 4));
    CHECK(mx::oracle::exact(std::numeric_limits<float>::max()) ==
          mx::oracle::power_of_two(128) - mx::oracle::power_of_two(104));
}

TEST_CASE("oracle: rounding to float32 agrees with this machine's additions") {
    const float values[] = {1.0f,      0x1p-24f,        0x1.8p-24f, 0x1.000002p0f,
                            0x1p-149f, 0x1.fffffep127f, 0x1p103f,   -1.0f,
                            3e-39f,    -0x1p-126f,      1e20f,      0.1f};
    for (const float a : values) {
        for (const float b : values) {
            const float sum = a + b;
            CHECK(mx::oracle::nearest_f32(ticks_of(a) + ticks_of(b), false) == sum);
        }
    }
    CHECK(std::signbit(mx::oracle::nearest_f32(0, true)));
    CHECK_FALSE(std::signbit(mx::oracle::nearest_f32(0, false)));
    // Half of the smallest subnormal is a tie with zero; three halves one with twice it.
    CHECK(mx::oracle::nearest_f32(ticks_of_power(-150), false) == 0.0f);
    CHECK(mx::oracle::nearest_f32(3 * ticks_of_power(-150), false) == 0x1p-148f);
    CHECK(std::signbit(mx::oracle::nearest_f32(-ticks_of_power(-150), false)));
}

TEST_CASE("oracle: binary16 to nearest even, saturated") {
    CHECK(mx::oracle::nearest_half_saturated(1.0f) == 0x3c00);
    CHECK(mx::oracle::nearest_half_saturated(-2.0f) == 0xc000);
    CHECK(mx::oracle::nearest_half_saturated(65504.0f) == 0x7bff);
    CHECK(mx::oracle::nearest_half_saturated(1e30f) == 0x7bff);
    CHECK(mx::oracle::nearest_half_saturated(-65520.0f) == 0xfbff);
    CHECK(mx::oracle::nearest_half_saturated(0x1p-24f) == 0x0001);
    CHECK(mx::oracle::nearest_half_saturated(0x1p-25f) == 0x0000);
    CHECK(mx::oracle::nearest_half_saturated(0x1.8p-24f) == 0x0002);
    CHECK(mx::oracle::nearest_half_saturated(-0x1p-30f) == 0x8000);
    CHECK(mx::oracle::nearest_half_saturated(0x1.002p0f) == 0x3c00);
    CHECK(mx::oracle::nearest_half_saturated(0x1.006p0f) == 0x3c02);
    CHECK(mx::oracle::nearest_half_saturated(0x1.ff8p-15f) == 0x03ff);
    CHECK(mx::oracle::nearest_half_saturated(0x1.ffcp-15f) == 0x0400);
    CHECK(mx::oracle::value_of_half(0x0001) == 0x1p-24f);
    CHECK(mx::oracle::value_of_half(0x8400) == -0x1p-14f);
    CHECK(mx::oracle::value_of_half(0x7bff) == 65504.0f);
}

TEST_CASE("oracle: logarithms by comparison") {
    CHECK(mx::oracle::floor_log2(8, 1) == 3);
    CHECK(mx::oracle::floor_log2(7, 1) == 2);
    CHECK(mx::oracle::floor_log2(1, 3) == -2);
    CHECK(mx::oracle::ceil_log2(8, 1) == 3);
    CHECK(mx::oracle::ceil_log2(9, 1) == 4);
    CHECK(mx::oracle::ceil_log2(1, 3) == -1);
    CHECK(mx::oracle::ceil_log2(3, 12) == -2);
}
