// SPDX-License-Identifier: Apache-2.0
// Vector code for values against one number at a time.
#include "libmx/codec/simd/values.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <span>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "tests/catch.hpp"

using namespace mx;
using tensor::dtype;

namespace {

// Words of any bits, NaN and Inf among them; `mask` leaves out large magnitudes.
template <typename Word>
std::vector<Word> words(std::size_t count, Word mask, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<Word> all(count);
    for (Word& w : all) w = static_cast<Word>(random()) & mask;
    return all;
}

float value_of(dtype, std::uint32_t word) { return base::float_from_bits(word); }
float value_of(dtype type, std::uint16_t word) {
    return type == dtype::bf16 ? base::float_from_bf16(word) : base::float_from_half(word);
}

template <typename Word>
void compare_maxima(dtype type, Word mask) {
    for (std::size_t count = 0; count < 600; count += count < 150 ? 1 : 37) {
        const std::vector<Word> all = words<Word>(count + 1, mask, static_cast<unsigned>(count));
        // One element later than a vector would begin.
        const std::span<const Word> from = std::span(all).subspan(1);
        std::uint32_t most = 0;
        for (const Word w : from) {
            const std::uint32_t magnitude =
                base::bits_of(value_of(type, w)) & base::f32_magnitude_mask;
            if (magnitude < base::f32_infinity) most = std::max(most, magnitude);
        }
        const codec::stored_values values{type, std::as_bytes(from).data(), count};
        CHECK(codec::simd::finite_amax(values, count) == most);
    }
}

}  // namespace

TEST_CASE("the largest finite magnitude is that of a search one by one") {
    compare_maxima<std::uint32_t>(dtype::f32, ~0u);
    compare_maxima<std::uint32_t>(dtype::f32, 0x807fffffu);  // subnormals
    compare_maxima<std::uint32_t>(dtype::f32, 0xff8fffffu);
    for (const dtype type : {dtype::bf16, dtype::f16}) {
        for (const std::uint16_t mask :
             std::array<std::uint16_t, 4>{0xffff, 0x807f, 0xfc00, 0xff80}) {
            compare_maxima<std::uint16_t>(type, mask);
        }
    }
    const std::vector<float> none(100, base::float_from_bits(base::f32_infinity));
    CHECK(codec::simd::finite_amax({dtype::f32, std::as_bytes(std::span(none)).data(), 100}, 100) ==
          0);
}

TEST_CASE("bfloat16 words become the numbers with their upper bits") {
    for (std::size_t count : {0, 1, 15, 16, 17, 63, 200}) {
        const auto from = words<std::uint16_t>(count, 0xffff, 7);
        std::vector<float> to(count + 1, 1.0f);
        codec::simd::from_bf16(from.data(), to.data(), count);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK(base::bits_of(to[i]) == std::uint32_t{from[i]} << 16);
        }
        CHECK(to[count] == 1.0f);
    }
}
