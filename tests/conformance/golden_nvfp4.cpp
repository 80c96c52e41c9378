// SPDX-License-Identifier: Apache-2.0
// NVFP4 blocks of torchao, Transformer Engine and ggml, compared bit for bit: tensor scale, block
// scales, codes, float32 values. Nothing is skipped.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/conformance/vectors.hpp"

namespace {

using mx::tests::vectors;

mx::codec::recipe recipe_of(const vectors& v) {
    const bool two_level = v.metadata.at("scale") == "two-level";
    return mx::codec::parse_recipe(
        std::string("nvfp4:scale=") + (two_level ? "two-level" : "single-level") +
        ",block=" + v.metadata.at("block") + ",round=" + v.metadata.at("round") +
        ",dialect=" + v.metadata.at("dialect"));
}

mx::codec::tensor_facts facts_of(const std::vector<float>& x) {
    mx::codec::tensor_facts facts;
    for (const float v : x) {
        facts.amax_bits = std::max(facts.amax_bits, mx::base::bits_of(std::abs(v)));
    }
    return facts;
}

struct nvfp4_differences {
    std::uint64_t blocks = 0, scales = 0, codes = 0, values = 0;
};

nvfp4_differences compare(const vectors& v, const mx::codec::block_params& p) {
    const std::vector<float>& x = v.tensor.at("input");
    const std::vector<float>& dequant = v.tensor.at("dequant");
    const std::vector<std::uint8_t> scales = v.codes("scale_code");
    const std::vector<std::uint8_t> codes = v.codes("code");
    const std::size_t n = v.last_axis.at("input");
    REQUIRE(n == 16);
    REQUIRE(x.size() == scales.size() * n);
    REQUIRE(codes.size() == x.size());
    REQUIRE(dequant.size() == x.size());
    nvfp4_differences t;
    std::vector<std::uint8_t> ours(n);
    std::vector<float> values(n);
    for (std::size_t b = 0; b < scales.size(); ++b) {
        ++t.blocks;
        const std::span<const float> block(x.data() + b * n, n);
        const auto stats = mx::codec::quantize_block(p, block, {}, ours, values);
        t.scales += stats.scale_code != scales[b] ? 1u : 0u;
        for (std::size_t i = 0; i < n; ++i) {
            t.codes += ours[i] != codes[b * n + i] ? 1u : 0u;
            const bool same = mx::base::bits_of(values[i]) == mx::base::bits_of(dequant[b * n + i]);
            t.values += same ? 0u : 1u;
        }
    }
    return t;
}

}  // namespace

TEST_CASE("NVFP4 blocks equal those of torchao, Transformer Engine and ggml") {
    std::uint64_t blocks = 0;
    const std::vector<std::string> files = mx::tests::vector_files("nvfp4");
    CHECK(files.size() == 4);
    for (const std::string& path : files) {
        const vectors v = mx::tests::read_vectors(path);
        const mx::codec::recipe r = recipe_of(v);
        mx::codec::block_params p = mx::codec::params_of(r, facts_of(v.tensor.at("input")));
        CAPTURE(path);
        for (const char* name : {"per_tensor_scale", "global_encode_scale"}) {
            if (!v.tensor.contains(name)) continue;
            const float stored = v.tensor.at(name).at(0);
            CHECK(p.tensor.stored == stored);
            p = mx::codec::params_of(r);
            mx::codec::set_tensor_scale(p, stored);
        }
        const nvfp4_differences t = compare(v, p);
        CHECK(t.scales == 0);
        CHECK(t.codes == 0);
        CHECK(t.values == 0);
        blocks += t.blocks;
    }
    CHECK(blocks == 157 + 157 + 218 + 227);
}
