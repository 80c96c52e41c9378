// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-a-scale-rule.md, beside the comparison with the oracle
// (tests/exhaustive/scales.cpp): the rule is in the list, and every backend here computes it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/api/mx/mx.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/codec/simd/kernels.hpp"
#include "libmx/scale/scale_rules.hpp"
#include "tests/catch.hpp"

TEST_CASE("a rule that was added by one row is listed, and every backend computes it") {
    REQUIRE(mx::scale::find_scale_rule("closest") != nullptr);
    const mx::recipe r = mx::parse_recipe("mxfp4:scale=closest");
    CHECK(mx::to_string(r) == "mxfp4:scale=closest");
    const mx::codec::block_params p = mx::codec::params_of(r);
    CHECK(mx::codec::simd::takes(p));
    CHECK(mx::codec::cuda::takes_rows(p, 1, 32));
    // Maxima of 4, the float32 below 6, 6 and 7 in units of 2^-20 to 2^20.
    std::vector<float> x;
    std::vector<std::uint8_t> expected;
    for (int e = -20; e <= 20; ++e) {
        for (const float amax : {4.0f, 0x1.7ffffep2f, 6.0f, 7.0f}) {
            for (int i = 0; i < 32; ++i) x.push_back(std::ldexp(i == 5 ? -amax : 1.0f, e));
            expected.push_back(static_cast<std::uint8_t>(127 + e + (amax >= 6 ? 1 : 0)));
        }
    }
    for (const mx::codec::backend& b : mx::codec::backends()) {
        if (!b.available()) continue;
        CAPTURE(std::string(b.name));
        const auto q = mx::quantize(x, r, {.backend = b.name});
        CHECK(std::ranges::equal(q.scale_codes(), expected));
    }
}
