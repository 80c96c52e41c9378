// SPDX-License-Identifier: Apache-2.0
#include "libmx/bench/normal_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/random.hpp"

namespace mx::bench {
namespace {

// A prime, so that the rows of a matrix do not start alike.
constexpr std::uint32_t period = 524287;

// The sum of sixteen uniform numbers is nearly normal and needs only integers, so that it does not
// depend on a library's logarithm.
float normal(std::uint32_t index) {
    std::int32_t sum = 0;
    for (std::uint32_t half = 0; half < 2; ++half) {
        const base::philox_words w = base::philox4x32_10({{index, half, 0, 0}}, 1, 0);
        for (const std::uint32_t u : w.word) {
            sum += static_cast<std::int32_t>(u >> 16) + static_cast<std::int32_t>(u & 0xffffu);
        }
    }
    // Odd, hence never zero. The standard deviation of the sum is 2^16 * sqrt(16 / 12).
    const std::int32_t centred = 2 * (sum - 8 * 65535) + 1;
    return static_cast<float>(centred) * (0.8660254f / 131072.0f / 32.0f);
}

// Returns the largest magnitude before conversion.
template <typename T, typename FromFloat>
float fill(std::span<std::byte> out, FromFloat&& from_float) {
    float largest = 0;
    const std::size_t all = out.size() / sizeof(T);
    std::vector<T> once(std::min<std::size_t>(all, period));
    for (std::size_t i = 0; i < once.size(); ++i) {
        const float x = normal(static_cast<std::uint32_t>(i));
        largest = std::max(largest, std::abs(x));
        once[i] = from_float(x);
    }
    for (std::size_t at = 0; at < all; at += once.size()) {
        const std::size_t count = std::min(once.size(), all - at);
        std::memcpy(out.data() + at * sizeof(T), once.data(), count * sizeof(T));
    }
    return largest;
}

std::uint16_t bf16_of(float x) {
    return static_cast<std::uint16_t>((base::bits_of(x) + 0x8000u) >> 16);
}

}  // namespace

codec::tensor_facts fill_normal(tensor::dtype type, std::span<std::byte> out) {
    switch (type) {
        case tensor::dtype::bf16:
            return {std::uint32_t{bf16_of(fill<std::uint16_t>(out, bf16_of))} << 16};
        case tensor::dtype::f16: {
            const float largest = fill<std::uint16_t>(out, base::half_saturated);
            return {base::bits_of(base::float_from_half(base::half_saturated(largest)))};
        }
        default:
            return {base::bits_of(fill<float>(out, [](float x) { return x; }))};
    }
}

}  // namespace mx::bench
