// SPDX-License-Identifier: Apache-2.0
// After docs/howto/add-an-element-format.md, beside the comparison of codes with the oracle
// (tests/exhaustive/codes.cpp): the format and its preset are listed, codes have the values of the
// file, and every backend here quantizes to them.
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "libmx/api/mx/mx.hpp"
#include "libmx/codec/backends.hpp"
#include "libmx/codec/block_params.hpp"
#include "libmx/codec/recipe_keys.hpp"
#include "libmx/codec/simd/kernels.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/element_formats.hpp"
#include "tests/catch.hpp"

TEST_CASE("a format that was added by one row is listed, and every backend quantizes to it") {
    const mx::format::element_format* const f = mx::format::find_element_format("e2m2");
    REQUIRE(f != nullptr);
    std::ifstream typed(MX_SCRATCH "/datasets/vectors/decode/e2m2.txt");
    std::string code, value;
    std::getline(typed, value);
    std::vector<float> values;
    while (typed >> code >> value) values.push_back(std::strtof(value.c_str(), nullptr));
    REQUIRE(values.size() == 32);
    for (std::uint32_t i = 0; i < 32; ++i) CHECK(mx::format::decode(*f, i) == values[i]);

    const mx::recipe r = mx::parse_recipe("mxfp5");
    CHECK(mx::to_string(r) == "mxfp5");
    CHECK(mx::codec::simd::takes(mx::codec::params_of(r)));
    for (const mx::codec::backend& b : mx::codec::backends()) {
        if (!b.available()) continue;
        CAPTURE(std::string(b.name));
        CHECK(mx::fake_quantize(values, r, {.backend = b.name}) == values);
    }
}
