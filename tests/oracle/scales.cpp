// SPDX-License-Identifier: Apache-2.0
// The oracle's scale rules on cases worked out by hand from the definitions.
#include "libmx/oracle/scale_rules.hpp"

#include <limits>
#include <string_view>

#include "tests/catch.hpp"

namespace {

using mx::oracle::integer_emax;
using mx::oracle::scale_rule;

// Exponent of the scale.
int exponent(scale_rule rule, std::string_view name, float amax,
             integer_emax emax = integer_emax::zero) {
    const auto list = mx::oracle::list_values(*mx::format::find_element_format(name), false);
    return mx::oracle::scale_code(rule, list, emax, amax) - 127;
}

}  // namespace

TEST_CASE("oracle: floor, ceil, even and rceil of typed maxima") {
    CHECK(exponent(scale_rule::floor, "e2m1", 4.0f) == 0);
    CHECK(exponent(scale_rule::floor, "e2m1", 7.99f) == 0);
    CHECK(exponent(scale_rule::floor, "e2m1", 8.0f) == 1);
    CHECK(exponent(scale_rule::ceil, "e2m1", 4.0f) == 0);
    CHECK(exponent(scale_rule::ceil, "e2m1", 4.0000005f) == 1);
    CHECK(exponent(scale_rule::even, "e2m1", 6.999f) == 0);
    CHECK(exponent(scale_rule::even, "e2m1", 7.0f) == 1);  // 1.75 * 4, the tie
    CHECK(exponent(scale_rule::rceil, "e2m1", 6.0f) == 0);
    CHECK(exponent(scale_rule::rceil, "e2m1", 6.0000005f) == 1);
    // The thresholds of amax/2^e above which even rounds up: 2 - 2^-(m+1).
    CHECK(exponent(scale_rule::even, "e4m3", 1.9374f) == -8);
    CHECK(exponent(scale_rule::even, "e4m3", 1.9375f) == -7);
    CHECK(exponent(scale_rule::even, "e5m2", 1.875f) == -14);
    CHECK(exponent(scale_rule::even, "e3m2", 1.8749f) == -4);
    CHECK(exponent(scale_rule::even, "e2m3", 1.9375f) == -1);
    CHECK(exponent(scale_rule::even, "e3m0", 1.5f) == -3);
    CHECK(exponent(scale_rule::even, "e3m0", 1.4999f) == -4);
    CHECK(exponent(scale_rule::rceil, "e4m3", 448.0f) == 0);
    CHECK(exponent(scale_rule::rceil, "e4m3", 449.0f) == 1);
    CHECK(exponent(scale_rule::rceil, "e5m2", 57344.0f) == 0);
    CHECK(exponent(scale_rule::rceil, "int8", 1.984375f) == 0);
    CHECK(exponent(scale_rule::rceil, "int8", 1.9843751f) == 1);
}

TEST_CASE("oracle: both ends of the scale's range") {
    const float inf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float largest = std::numeric_limits<float>::max();
    for (const auto& [name, rule] : mx::oracle::scale_rule_names) {
        if (rule >= scale_rule::two_level) continue;  // scales of other formats
        CAPTURE(std::string(name));
        CHECK(exponent(rule, "e2m1", 0.0f) == -127);
        CHECK(exponent(rule, "e2m1", 0x1p-149f) == -127);
        CHECK(exponent(rule, "e5m2", 0x1p-126f) == -127);
        CHECK(exponent(rule, "e2m1", inf) == 128);
        CHECK(exponent(rule, "e2m1", nan) == 128);
    }
    CHECK(exponent(scale_rule::floor, "int8", 0x1p-127f) == -127);
    CHECK(exponent(scale_rule::floor, "int8", 0x1p-126f) == -126);
    CHECK(exponent(scale_rule::ceil, "int8", 0x1.8p-127f) == -126);
    CHECK(exponent(scale_rule::floor, "e2m1", largest) == 125);
    CHECK(exponent(scale_rule::ceil, "e2m1", largest) == 126);
    CHECK(exponent(scale_rule::ceil, "int8", largest) == 127);  // 2^128 clamps
    CHECK(exponent(scale_rule::even, "e2m1", largest) == 128);  // rounds to 2^128: NaN
    CHECK(exponent(scale_rule::even, "e2m1", 0x1.bffffep127f) == 125);
    CHECK(exponent(scale_rule::even, "e2m1", 0x1.cp127f) == 128);
    CHECK(exponent(scale_rule::rceil, "e2m1", largest) == 126);
}

TEST_CASE("oracle: the three readings of an integer's emax") {
    // int4: largest 7/4.
    CHECK(exponent(scale_rule::floor, "int4", 1.75f, integer_emax::zero) == 0);
    CHECK(exponent(scale_rule::floor, "int4", 1.75f, integer_emax::one) == -1);
    CHECK(exponent(scale_rule::floor, "int4", 1.75f, integer_emax::log2max) == 0);
    CHECK(exponent(scale_rule::floor, "int4", 1.74f, integer_emax::log2max) == -1);
    CHECK(exponent(scale_rule::ceil, "int4", 1.0f, integer_emax::zero) == 0);
    CHECK(exponent(scale_rule::ceil, "int4", 1.1f, integer_emax::zero) == 1);
    CHECK(exponent(scale_rule::ceil, "int4", 1.1f, integer_emax::one) == 0);
    CHECK(exponent(scale_rule::ceil, "int4", 1.75f, integer_emax::log2max) == 0);
    CHECK(exponent(scale_rule::ceil, "int4", 1.76f, integer_emax::log2max) == 1);
    // even: 1.625 is the tie between 1.5 (six quarters, even) and 1.75.
    CHECK(exponent(scale_rule::even, "int4", 1.625f, integer_emax::log2max) == -1);
    CHECK(exponent(scale_rule::even, "int4", 1.626f, integer_emax::log2max) == 0);
    CHECK(exponent(scale_rule::even, "int4", 1.875f, integer_emax::zero) == 1);
}
