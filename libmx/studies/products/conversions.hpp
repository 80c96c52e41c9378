// SPDX-License-Identifier: Apache-2.0
// Converts values to the wider input formats of multipliers: float32, tf32, bf16, f16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/gemm/operand.hpp"

namespace mx::products {

/// Rounds to the format `name` in place and returns the number of changed values: bf16 and f16 to
/// nearest even (Inf on overflow), tf32 by dropping 13 bits as multipliers do; f32 changes nothing.
/// NaN stays NaN.
std::uint64_t convert_values(std::string_view name, std::span<float> x);

/// Encodes values that convert_values has rounded as codes of that format.
gemm::operand values_operand(std::string_view name, std::span<const float> x, std::size_t rows,
                             std::size_t depth);

/// The binary16 bits of the float32 `x`, to nearest even, Inf on overflow; NaN becomes 0x7fff.
std::uint16_t half_bits(float x);

}  // namespace mx::products
