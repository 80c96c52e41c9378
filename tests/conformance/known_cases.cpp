// SPDX-License-Identifier: Apache-2.0
// Cases people ran into.
#include <cstdint>
#include <string>
#include <vector>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/oracle/block.hpp"
#include "tests/catch.hpp"

// microsoft/microxcaling issue 4: a block with maximum 960, near the end of its binade. Floor and
// even (threshold 1.9375 * 512 = 992) choose the scale 2, under which 957 and 960 clamp to 448 * 2;
// ceil and rceil choose 4, under which both round to 240 * 4.
TEST_CASE("microxcaling issue 4: in a block with maximum 960, 957 becomes 896 or 960") {
    std::vector<float> block(32, 1.0f);
    block[3] = 957.0f;
    block[17] = 960.0f;
    struct row {
        std::string rule;
        int scale_code;
        float result;
    };
    const std::vector<row> rows{{"floor", 128, 896.0f},
                                {"even", 128, 896.0f},
                                {"ceil", 129, 960.0f},
                                {"rceil", 129, 960.0f}};
    for (const row& expected : rows) {
        CAPTURE(expected.rule);
        const auto r = mx::codec::parse_recipe("mxfp8:scale=" + expected.rule);
        const auto p = mx::codec::params_of(r);
        std::vector<std::uint8_t> codes(block.size());
        std::vector<float> values(block.size());
        const auto stats = mx::codec::quantize_block(p, block, {}, codes);
        mx::codec::dequantize_block(p, stats.scale, stats.offset, codes, values);
        CHECK(int{stats.scale_code} == expected.scale_code);
        CHECK(values[3] == expected.result);
        CHECK(values[17] == expected.result);
        CHECK(stats.count.overflow == (expected.result == 896.0f ? 2u : 0u));

        const auto list = mx::oracle::list_values(*r.element, false);
        const auto stated = mx::oracle::quantize_block(mx::app::oracle_recipe(r), list, block, {});
        CHECK(stated.scale_code == expected.scale_code);
        CHECK(mx::oracle::dequantized_f32(stated, 3) == expected.result);
    }
}
