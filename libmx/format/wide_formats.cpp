// SPDX-License-Identifier: Apache-2.0
#include "libmx/format/wide_formats.hpp"

#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"

namespace mx::format {
namespace {

constexpr std::uint32_t tf32_dropped = 0x1fffu;

// Keeps a payload bit of a NaN that tf32 can store.
float tf32_of(float x) {
    if (std::isnan(x)) return x;
    return base::float_from_bits(base::bits_of(x) & ~tf32_dropped);
}

float half_of(float x) { return std::isnan(x) ? x : base::float_from_half(half_bits(x)); }

template <typename Convert>
std::uint64_t each(std::span<float> x, Convert&& convert) {
    std::uint64_t changed = 0;
    for (float& v : x) {
        const float next = convert(v);
        changed += next == v || std::isnan(v) ? 0u : 1u;
        v = next;
    }
    return changed;
}

}  // namespace

std::uint64_t round_to_wide(std::string_view name, std::span<float> x) {
    if (name == "tf32") return each(x, tf32_of);
    if (name == "bf16") return each(x, base::rounded_to_bf16);
    if (name == "f16") return each(x, half_of);
    return 0;
}

std::uint16_t half_bits(float x) {
    return std::isnan(x) ? std::uint16_t{0x7fffu} : base::half_bits_of(x);
}

}  // namespace mx::format
