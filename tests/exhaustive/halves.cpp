// SPDX-License-Identifier: Apache-2.0
// binary16, the format of stored offsets: every value, and every point where rounding changes.
#include <cmath>
#include <cstdint>

#include "libmx/base/half.hpp"
#include "libmx/oracle/number.hpp"
#include "tests/catch.hpp"

TEST_CASE("every binary16 value widens as the oracle says and comes back") {
    for (std::uint32_t h = 0; h < 65536; ++h) {
        const auto bits = static_cast<std::uint16_t>(h);
        const float value = mx::base::float_from_half(bits);
        if ((h & 0x7c00u) == 0x7c00u) {
            REQUIRE(!std::isfinite(value));
            continue;
        }
        REQUIRE(mx::base::bits_of(value) == mx::base::bits_of(mx::oracle::value_of_half(bits)));
        REQUIRE(mx::base::half_saturated(value) == bits);
        REQUIRE(mx::oracle::nearest_half_saturated(value) == bits);
    }
}

TEST_CASE("float32 rounds to binary16 as the oracle says around every value and midpoint") {
    std::uint64_t differences = 0;
    const auto check = [&](std::uint32_t centre) {
        for (std::uint32_t bits = centre - 2; bits != centre + 3; ++bits) {
            const float x = mx::base::float_from_bits(bits);
            if (!std::isfinite(x)) continue;
            const auto expected = mx::oracle::nearest_half_saturated(x);
            differences += mx::base::half_saturated(x) != expected ? 1 : 0;
            differences += mx::base::half_saturated(-x) != (expected ^ 0x8000u) ? 1 : 0;
        }
    };
    for (std::uint16_t h = 1; h <= 0x7bffu; ++h) {
        const float here = mx::base::float_from_half(h);
        const float before = mx::base::float_from_half(static_cast<std::uint16_t>(h - 1));
        check(mx::base::bits_of(here));
        check(mx::base::bits_of((here + before) / 2));
    }
    for (const std::uint32_t bits : {2u, 0x00800000u, 0x477fefffu, 0x477ff000u, 0x7f7ffffdu}) {
        check(bits);
    }
    CHECK(differences == 0);
}
