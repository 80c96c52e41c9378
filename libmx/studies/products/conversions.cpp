// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/products/conversions.hpp"

#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/format/wide_formats.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::products {
namespace {

std::uint32_t code_of(std::string_view name, float x) {
    if (name == "f16") return format::half_bits(x);
    const std::uint32_t bits = base::bits_of(x);
    if (name == "bf16") return std::isnan(x) ? 0x7fffu : bits >> 16;
    // A NaN with a payload only in the dropped bits would become Inf.
    return name == "tf32" && std::isnan(x) ? base::f32_magnitude_mask : bits;
}

}  // namespace

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
