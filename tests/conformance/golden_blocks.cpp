// SPDX-License-Identifier: Apache-2.0
// Compares blocks quantized by torchao and gfloat byte for byte: scales, codes, values.
//
// Skipped, but counted: the element codes of torchao blocks with a NaN scale in formats without a
// NaN code. They depend on the NaN's payload; the scale and the values (all NaN) are compared.
#include <cmath>
#include <cstdint>
#include <string>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/format/decode.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

namespace {

using mx::tests::vectors;

std::string recipe_text(const vectors& v) {
    return "mxfp8:element=" + v.metadata.at("element") + ",scale=" + v.metadata.at("scale") +
           ",round=" + v.metadata.at("round") + ",block=" + v.metadata.at("block");
}

struct block_differences {
    std::uint64_t blocks = 0;
    std::uint64_t codes_skipped = 0;
    std::uint64_t scales = 0;  ///< differences counted from here on
    std::uint64_t codes = 0;
    std::uint64_t values = 0;
    std::string first;

    void differ(std::uint64_t& kind, const std::string& where) {
        if (kind++ == 0) first += where + "; ";
    }
};

block_differences compare(const vectors& v) {
    const mx::codec::recipe r = mx::codec::parse_recipe(recipe_text(v));
    const mx::codec::block_params p = mx::codec::params_of(r);
    const std::vector<float>& x = v.tensor.at("input");
    const std::vector<float>& dequant = v.tensor.at("dequant");
    const std::vector<std::uint8_t> scales = v.codes("scale_code");
    const std::vector<std::uint8_t> codes = v.codes("code");
    const std::size_t n = v.last_axis.at("input");
    REQUIRE(n == static_cast<std::size_t>(r.block.cols));
    REQUIRE(x.size() == scales.size() * n);
    REQUIRE(codes.size() == x.size());
    REQUIRE(dequant.size() == x.size());

    block_differences t;
    std::vector<std::uint8_t> ours(n);
    std::vector<float> values(n);
    for (std::size_t b = 0; b < scales.size(); ++b) {
        ++t.blocks;
        const std::span<const float> block(x.data() + b * n, n);
        const auto stats = mx::codec::quantize_block(p, block, {}, ours);
        mx::codec::dequantize_block(p, stats.scale, stats.offset, ours, values);
        const std::string where = "block " + std::to_string(b);
        if (stats.scale_code != scales[b]) t.differ(t.scales, where + " scale");
        const bool payload_codes = scales[b] == 255 && p.element.nan_code < 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::string element = where + " element " + std::to_string(i);
            const std::uint8_t theirs = codes[b * n + i];
            if (payload_codes) {
                ++t.codes_skipped;
            } else if (ours[i] != theirs &&
                       !(std::isnan(p.value[ours[i]]) && std::isnan(p.value[theirs]))) {
                t.differ(t.codes, element + " code");
            }
            const float value = dequant[b * n + i];
            const bool same = mx::base::bits_of(values[i]) == mx::base::bits_of(value) ||
                              (std::isnan(values[i]) && std::isnan(value));
            if (!same) t.differ(t.values, element + " value");
        }
    }
    return t;
}

}  // namespace

TEST_CASE("blocks equal those of torchao and gfloat") {
    std::uint64_t torchao = 0;
    std::uint64_t gfloat = 0;
    for (const std::string& path : mx::tests::vector_files("blocks")) {
        const vectors v = mx::tests::read_vectors(path);
        const block_differences t = compare(v);
        CAPTURE(path, t.first, t.codes_skipped);
        CHECK(t.blocks > 100);
        CHECK(t.scales == 0);
        CHECK(t.codes == 0);
        CHECK(t.values == 0);
        const bool is_torchao = v.metadata.at("dialect") == "torchao";
        (is_torchao ? torchao : gfloat) += 1;
        const bool has_nan =
            v.metadata.at("element") == "e4m3" || v.metadata.at("element") == "e5m2";
        if (!is_torchao || has_nan) CHECK(t.codes_skipped == 0);
        CHECK(t.codes_skipped <= 1024);
    }
    CHECK(torchao == 24);
    CHECK(gfloat == 6);
}
