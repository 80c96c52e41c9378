// SPDX-License-Identifier: Apache-2.0
// The bytes of synthetic tensors depend on nothing but seed, tensor and index, and do not change
// from one version, compiler or machine to the next.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "datasets/generators/checkpoint_plan.hpp"
#include "datasets/generators/tensor_source.hpp"
#include "datasets/generators/words.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"
#include "tests/catch.hpp"

using namespace mx::synth;
using mx::tensor::dtype;

namespace {

std::vector<std::byte> bytes_of(const tensor_spec& spec, std::uint64_t seed) {
    std::vector<std::byte> out(static_cast<std::size_t>(byte_count(spec)));
    tensor_source(spec, seed).fill(0, out);
    return out;
}

/// FNV-1a over the data of every tensor of a plan, in order.
std::uint64_t checksum(const std::vector<tensor_spec>& plan, std::uint64_t seed) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const tensor_spec& spec : plan) {
        for (const std::byte b : bytes_of(spec, seed)) {
            hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
        }
    }
    return hash;
}

std::vector<tensor_spec> tiny(dtype type) {
    return plan_checkpoint(find_preset("tiny"), {type, std::nullopt});
}

}  // namespace

TEST_CASE("synth: words by the block are the words one by one", "[synth]") {
    const mx::base::random_key key{0x123456789abcdef0u, 0xfedcba9876543210u};
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{0xfffffff3u},
          std::uint64_t{0x3fffffff1u}, std::uint64_t{1} << 60}) {
        for (const std::size_t count : {1u, 2u, 3u, 4u, 31u}) {
            std::vector<std::uint32_t> words(count);
            fill_words(key, first, words);
            for (std::size_t i = 0; i < count; ++i) {
                REQUIRE(words[i] == mx::base::random_u32(key, first + i));
            }
        }
    }
}

TEST_CASE("synth: any split of a tensor gives the same bytes", "[synth]") {
    for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32}) {
        for (const tensor_spec& spec : tiny(type)) {
            const tensor_source source(spec, 3);
            const std::vector<std::byte> whole = bytes_of(spec, 3);
            std::vector<std::byte> pieces(whole.size());
            std::uint64_t first = 0;
            for (std::uint64_t length = 1; first < source.elements(); length = length * 3 + 2) {
                const std::uint64_t count = std::min(length, source.elements() - first);
                source.fill(first,
                            std::span(pieces).subspan(
                                static_cast<std::size_t>(first * source.bytes_per_element()),
                                static_cast<std::size_t>(count * source.bytes_per_element())));
                first += count;
            }
            INFO(spec.name);
            REQUIRE(pieces == whole);
        }
    }
}

TEST_CASE("synth: a value depends on its index, not on the tensor's size", "[synth]") {
    tensor_spec small = tiny(dtype::f32).front();
    tensor_spec big = small;
    big.shape[0] = std::uint64_t{1} << 40;
    std::vector<float> a(small.shape[1]);
    std::vector<float> b(small.shape[1]);
    tensor_source(small, 0).fill_f32(7 * small.shape[1], a);
    tensor_source(big, 0).fill_f32(7 * small.shape[1], b);
    CHECK(a == b);
    // Far beyond 2^32 elements a row still has new values.
    tensor_source(big, 0).fill_f32((std::uint64_t{1} << 39) * small.shape[1], b);
    CHECK(a != b);
}

TEST_CASE("synth: seeds and names select different draws", "[synth]") {
    tensor_spec spec = tiny(dtype::bf16).front();
    const std::vector<std::byte> bytes = bytes_of(spec, 0);
    CHECK(bytes == bytes_of(spec, 0));
    CHECK(bytes != bytes_of(spec, 1));
    CHECK(bytes != bytes_of(spec, std::uint64_t{1} << 32));
    spec.name += "x";
    CHECK(bytes != bytes_of(spec, 0));
}

TEST_CASE("synth: stored values are the nearest to those drawn", "[synth]") {
    for (const tensor_spec& spec : tiny(dtype::bf16)) {
        if (spec.kind != content::random || spec.type != dtype::bf16) continue;
        tensor_spec half = spec;
        half.type = dtype::f16;
        const std::vector<std::byte> stored = bytes_of(spec, 0);
        const std::vector<std::byte> halves = bytes_of(half, 0);
        std::vector<float> drawn(stored.size() / 2);
        tensor_source(spec, 0).fill_f32(0, drawn);
        for (std::size_t i = 0; i < drawn.size(); ++i) {
            std::uint16_t bf16 = 0;
            std::uint16_t f16 = 0;
            std::memcpy(&bf16, &stored[2 * i], 2);
            std::memcpy(&f16, &halves[2 * i], 2);
            const float x = drawn[i];
            REQUIRE(std::isfinite(x));
            // Eight (eleven) significant bits: the error is at most half a unit of the last.
            REQUIRE(std::abs(mx::base::float_from_bf16(bf16) - x) <= std::abs(x) * 0x1p-8f);
            if (std::abs(x) < 65504.0f) {
                const float error = std::abs(mx::base::float_from_half(f16) - x);
                REQUIRE(error <= std::max(std::abs(x) * 0x1p-11f, 0x1p-25f));
            }
        }
    }
}

TEST_CASE("synth: ties round to the even neighbour", "[synth]") {
    struct entry {
        double value;
        unsigned bf16;
    };
    for (const entry& e : {entry{1.0 + 0x1p-8, 0x3f80}, entry{1.0 + 0x3p-8, 0x3f82},
                           entry{-1.0 - 0x1p-8, 0xbf80}, entry{2.0 - 0x1p-8, 0x4000}}) {
        tensor_spec spec;
        spec.name = "constant";
        spec.shape = {1};
        spec.centre = e.value;
        spec.scale = 0.0;
        const std::vector<std::byte> bytes = bytes_of(spec, 0);
        CHECK((static_cast<unsigned>(bytes[0]) | static_cast<unsigned>(bytes[1]) << 8) == e.bf16);
    }
}

TEST_CASE("synth: the bytes of the tiny preset are fixed", "[synth]") {
    // A change here changes every published figure made from `mx synth`: note it in the changelog.
    CHECK(checksum(tiny(dtype::bf16), 0) == 0xf732ebda9c31fd27u);
    CHECK(checksum(tiny(dtype::f16), 0) == 0x2d9a55b48de1c39fu);
    CHECK(checksum(tiny(dtype::f32), 0) == 0x40b725d941ddfffau);
    CHECK(checksum(tiny(dtype::bf16), 42) == 0x8803d8fcb3d40f6du);
}
