// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/conversion_inputs.hpp"

#include <set>

#include "libmx/base/bits.hpp"
#include "libmx/format/decode.hpp"
#include "tests/catch.hpp"

using namespace mx::conformance::vectors;

TEST_CASE("the strata hold every tie of every format, and its neighbours") {
    const auto list = stratified_floats(1);
    CHECK(list == stratified_floats(1));
    CHECK(list != stratified_floats(2));
    const std::set<std::uint32_t> all(list.begin(), list.end());
    for (const char* name : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
        const mx::format::element_format& f = *mx::format::find_element_format(name);
        for (std::uint32_t code = 0; code < f.max_code(); ++code) {
            const float tie =
                0.5F * (mx::format::decode(f, code) + mx::format::decode(f, code + 1));
            const std::uint32_t bits = mx::base::bits_of(tie);
            INFO(name << " " << code);
            CHECK(all.count(bits) == 1);
            CHECK(all.count(bits | 0x80000000u) == 1);
            CHECK(all.count(bits - 1) == 1);
            CHECK(all.count(bits + 1) == 1);
        }
    }
    CHECK(all.count(0x7f800001u) == 1);
    CHECK(all.count(0xffffffffu) == 1);
}

TEST_CASE("sources of 16 bits are all of them, in order") {
    CHECK(all_halves(conversion_input::bf16x2).at(0x3f80) == 0x3f800000u);
    CHECK(all_halves(conversion_input::f16x2).at(0x3c00) == 0x3f800000u);
    CHECK(all_halves(conversion_input::f16x2).at(0x0001) == 0x33800000u);
}

TEST_CASE("what the emulator answers to conversions") {
    const auto code = [](const char* name, std::uint32_t x) {
        return narrower(*find_narrowing(name))(x);
    };
    CHECK(code("e4m3.rn", 0x7f800000u) == 0x7e);  // Inf saturates
    CHECK(code("e4m3.rn", 0xffc00000u) == 0x7f);  // NaN
    CHECK(code("e2m1.rn", 0xffc00000u) == 0x7);
    CHECK(code("e4m3.rn", 0xbf800000u) == 0xb8);
    CHECK(code("e4m3.rn.relu", 0xbf800000u) == 0x00);
    CHECK(code("e4m3.rn.relu", 0x80000000u) == 0x00);
    CHECK(code("ue8m0.rp.sat", 0x3f800001u) == 128);
    CHECK(code("ue8m0.rz.sat", 0x3f800001u) == 127);
    CHECK(code("ue8m0.rp.sat", 0x7f7fffffu) == 254);
    CHECK(code("ue8m0.rp", 0x7f7fffffu) == 255);
    CHECK(code("ue8m0.rp", 0x7f800000u) == 255);
    CHECK(widened(*find_widening("e5m2.f16"), 0x7c) == 0x7c00);
    CHECK(widened(*find_widening("e4m3.f16"), 0x7f) == 0x7fff);
    CHECK(widened(*find_widening("ue8m0.bf16"), 0) == 0x0040);
    CHECK(widened(*find_widening("e4m3.relu.f16"), 0x38) == 0x3c00);
    CHECK(widened(*find_widening("e4m3.relu.f16"), 0xb8) == 0);
    CHECK(widened(*find_widening("e4m3.relu.f16"), 0x80) == 0);
    CHECK(widened(*find_widening("e4m3.relu.f16"), 0xff) == 0x7fff);
}

TEST_CASE("stochastic rounding: a carry out of the random bits goes up") {
    const stochastic_narrowing& bf16 = *find_stochastic_narrowing("bf16.rs");
    const std::uint32_t x[4] = {0x3f800001u, 0x3f80ffffu, 0, 0};
    CHECK(stochastic_result(bf16, random_byte_orders[0], x, 0x0000ffffu) == 0x3f803f81u);
    CHECK(stochastic_result(bf16, random_byte_orders[0], x, 0x0001fffeu) == 0x3f813f80u);
    const stochastic_narrowing& f16 = *find_stochastic_narrowing("f16.rs");
    const std::uint32_t y[4] = {0x3f800001u, 0x3f801fffu, 0, 0};
    CHECK(stochastic_result(f16, random_byte_orders[0], y, 0x00010000u | 0x1fffu) == 0x3c013c01u);
    const stochastic_narrowing& e2m1 = *find_stochastic_narrowing("e2m1.rs");
    // 1.25 is half way from 1 (code 2) to 1.5 (code 3): up from 128 random units on.
    const std::uint32_t z[4] = {0x3fa00000u, 0x3fa00000u, 0x3fa00000u, 0x3fa00000u};
    CHECK(stochastic_result(e2m1, random_byte_orders[0], z, 0x7f807f80u) == 0x2323u);
    CHECK(stochastic_result(e2m1, random_byte_orders[3], z, 0x80807f7fu) == 0x3232u);
    // One unit of 16 bits below the midpoint: eight bits do not show it, sixteen do.
    const std::uint32_t w[4] = {0x3f9fffc0u, 0, 0, 0};
    CHECK((stochastic_result(e2m1, random_byte_orders[2], w, 0x00810000u) & 0xfu) == 3u);
    CHECK((stochastic_result(e2m1, random_byte_orders[5], w, 0x00800000u) & 0xfu) == 2u);
    CHECK((stochastic_result(e2m1, random_byte_orders[5], w, 0x00800001u) & 0xfu) == 3u);
}

TEST_CASE("stochastic rounding with .relu and .satfinite") {
    const std::uint32_t x[4] = {0xbf800001u, 0x7f7fffffu, 0, 0};
    const auto result = [&](const char* name, std::uint32_t random) {
        return stochastic_result(*find_stochastic_narrowing(name), random_byte_orders[0], x,
                                 random);
    };
    CHECK(result("bf16.rs", 0x00010000u) == 0x7f80bf80u);
    CHECK(result("bf16.rs.sat", 0x00010000u) == 0x7f7fbf80u);
    CHECK(result("bf16.rs.relu", 0x00010000u) == 0x7f800000u);
    CHECK(result("f16.rs", 0) == 0x7c00bc00u);
    CHECK(result("f16.rs.sat", 0) == 0x7bffbc00u);
    CHECK((result("e4m3.rs", 0) & 0xffffu) == 0x7eb8u);
    CHECK((result("e4m3.rs.relu", 0) & 0xffffu) == 0x7e00u);
}

TEST_CASE("stochastic inputs: every random byte of every value, then random ones") {
    const stochastic_narrowing& row = *find_stochastic_narrowing("e4m3.rs");
    const std::size_t swept = 4 * 7 * (4 * 256 * 2 + 32);
    CHECK(stochastic_inputs(row, 1, 0).size() == swept);
    const auto some = stochastic_inputs(row, 1, 10);
    CHECK(some.size() == swept + 10);
    CHECK(some[swept].random != some[swept + 1].random);
}
