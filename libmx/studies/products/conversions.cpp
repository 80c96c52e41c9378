// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/conversions.hpp"

#include <cmath>

#include "libmx/base/half.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::products {
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

std::uint32_t code_of(std::string_view name, float x) {
    if (name == "f16") return half_bits(x);
    const std::uint32_t bits = base::bits_of(x);
    if (name == "bf16") return std::isnan(x) ? 0x7fffu : bits >> 16;
    // A NaN with a payload only in the dropped bits would become Inf.
    return name == "tf32" && std::isnan(x) ? base::f32_magnitude_mask : bits;
}

}  // namespace

std::uint16_t half_bits(float x) {
    if (std::isnan(x)) return 0x7fffu;
    // Half a step above 65504 is a tie, which rounds up to even.
    if (std::abs(x) >= 65520.0f) return x < 0 ? 0xfc00u : 0x7c00u;
    return base::half_saturated(x);
}

std::uint64_t convert_values(std::string_view name, std::span<float> x) {
    if (name == "tf32") return each(x, tf32_of);
    if (name == "bf16") return each(x, base::rounded_to_bf16);
    if (name == "f16") return each(x, half_of);
    return 0;
}

gemm::operand values_operand(std::string_view name, std::span<const float> x, std::size_t rows,
                             std::size_t depth) {
    gemm::operand o;
    o.rows = rows;
    o.depth = depth;
    o.format = gemm::find_operand_format(name);
    o.codes.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) o.codes[i] = code_of(name, x[i]);
    return o;
}

}  // namespace mx::products
