// SPDX-License-Identifier: Apache-2.0
// The oracle's decode against values typed from OCP FP8 1.0 (tables 1 and 2) and OCP MX 1.0
// (section 5.3).
#include "libmx/oracle/value_list.hpp"

#include <string_view>
#include <vector>

#include "tests/catch.hpp"

namespace {

using mx::oracle::decoded;
using mx::oracle::number_class;
using mx::oracle::rational;

decoded of(std::string_view name, unsigned code) {
    return mx::oracle::decode(*mx::format::find_element_format(name), code);
}

void check_positive_half(std::string_view name, const std::vector<double>& typed) {
    const unsigned half = 1u << (mx::oracle::code_bits(*mx::format::find_element_format(name)) - 1);
    REQUIRE(typed.size() == half);
    for (unsigned code = 0; code < half; ++code) {
        CAPTURE(std::string(name), code);
        CHECK(of(name, code).value() == rational(typed[code]));
        CHECK_FALSE(of(name, code).negative);
        CHECK(of(name, code + half).value() == rational(-typed[code]));
        CHECK(of(name, code + half).negative);
    }
}

}  // namespace

TEST_CASE("oracle: FP4 and FP6 codes decode to the values of the specification") {
    check_positive_half("e2m1", {0, 0.5, 1, 1.5, 2, 3, 4, 6});
    check_positive_half("e3m0", {0, 0.25, 0.5, 1, 2, 4, 8, 16});
    check_positive_half("e2m3",
                        {0,     0.125, 0.25,  0.375, 0.5,   0.625, 0.75, 0.875, 1,    1.125, 1.25,
                         1.375, 1.5,   1.625, 1.75,  1.875, 2,     2.25, 2.5,   2.75, 3,     3.25,
                         3.5,   3.75,  4,     4.5,   5,     5.5,   6,    6.5,   7,    7.5});
    check_positive_half(
        "e3m2", {0,     0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.625, 0.75,
                 0.875, 1,      1.25,  1.5,    1.75, 2,      2.5,   3,      3.5, 4,     5,
                 6,     7,      8,     10,     12,   14,     16,    20,     24,  28});
}

TEST_CASE("oracle: FP8 codes decode to the limits of the specification") {
    CHECK(of("e4m3", 0x7e).value() == 448);
    CHECK(of("e4m3", 0xfe).value() == -448);
    CHECK(of("e4m3", 0x78).value() == 256);
    CHECK(of("e4m3", 0x38).value() == 1);
    CHECK(of("e4m3", 0x08).value() == rational(1, 64));
    CHECK(of("e4m3", 0x07).value() == rational(7, 512));
    CHECK(of("e4m3", 0x01).value() == rational(1, 512));
    CHECK(of("e4m3", 0x7f).what == number_class::nan);
    CHECK(of("e4m3", 0xff).what == number_class::nan);
    CHECK(of("e5m2", 0x7b).value() == 57344);
    CHECK(of("e5m2", 0x3c).value() == 1);
    CHECK(of("e5m2", 0x04).value() == rational(1, 16384));
    CHECK(of("e5m2", 0x03).value() == rational(3, 65536));
    CHECK(of("e5m2", 0x01).value() == rational(1, 65536));
    CHECK(of("e5m2", 0x7c).what == number_class::infinite);
    CHECK(of("e5m2", 0xfc).what == number_class::infinite);
    CHECK(of("e5m2", 0xfc).negative);
    for (const unsigned code : {0x7du, 0x7eu, 0x7fu, 0xfdu, 0xfeu, 0xffu}) {
        CHECK(of("e5m2", code).what == number_class::nan);
    }
    CHECK(of("e4m3", 0x80).value() == 0);
    CHECK(of("e4m3", 0x80).negative);
}

TEST_CASE("oracle: integer codes are two's complement with an implied scale") {
    CHECK(of("int8", 0x7f).value() == rational(127, 64));
    CHECK(of("int8", 0x80).value() == -2);
    CHECK(of("int8", 0x81).value() == rational(-127, 64));
    CHECK(of("int8", 0xff).value() == rational(-1, 64));
    CHECK(of("int4", 0x7).value() == rational(7, 4));
    CHECK(of("int4", 0x8).value() == -2);
    CHECK(of("int4", 0xf).value() == rational(-1, 4));
    CHECK(of("int2", 0x1).value() == 1);
    CHECK(of("int2", 0x3).value() == -1);
    CHECK(of("int3", 0x3).value() == rational(3, 2));
    CHECK(of("int5", 0xf).value() == rational(15, 8));
    CHECK(of("int6", 0x1f).value() == rational(31, 16));
    CHECK(of("int7", 0x3f).value() == rational(63, 32));
}

TEST_CASE("oracle: scale codes decode to the values of the specification") {
    const auto& e8m0 = *mx::format::find_scale_format("e8m0");
    const auto& ue4m3 = *mx::format::find_scale_format("ue4m3");
    CHECK(mx::oracle::decode_scale(e8m0, 127).value() == 1);
    CHECK(mx::oracle::decode_scale(e8m0, 0).value() == mx::oracle::power_of_two(-127));
    CHECK(mx::oracle::decode_scale(e8m0, 254).value() == mx::oracle::power_of_two(127));
    CHECK(mx::oracle::decode_scale(e8m0, 255).what == number_class::nan);
    CHECK(mx::oracle::decode_scale(ue4m3, 0x7e).value() == 448);
    CHECK(mx::oracle::decode_scale(ue4m3, 0x01).value() == rational(1, 512));
    CHECK(mx::oracle::decode_scale(ue4m3, 0x7f).what == number_class::nan);
}

TEST_CASE("oracle: value lists end where the formats do and go on in the same steps") {
    const auto list = mx::oracle::list_values(*mx::format::find_element_format("e4m3"), false);
    CHECK(list.quantum_exponent == -9);
    CHECK(list.greatest == 229376);
    CHECK(list.least == -229376);
    CHECK(list.smallest_normal == 8);
    CHECK(list.nan_code == 0x7f);
    CHECK(list.infinity_code == -1);
    std::vector<std::int64_t> beyond;
    for (const auto& v : list.values) {
        if (v.quanta > list.greatest) beyond.push_back(v.quanta / 512);
    }
    REQUIRE(beyond.size() > 3);
    CHECK(beyond[0] == 480);
    CHECK(beyond[1] == 512);
    CHECK(beyond[2] == 576);

    const auto& int4 = *mx::format::find_element_format("int4");
    CHECK(mx::oracle::list_values(int4, false).least == -7);
    CHECK(mx::oracle::list_values(int4, true).least == -8);
    CHECK(mx::oracle::list_values(int4, true).greatest == 7);
}
