// SPDX-License-Identifier: Apache-2.0
// Values in the wider formats that multipliers take: float32, tf32, bf16, f16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/gemm/operand.hpp"

namespace mx::products {

/// Rounds to the format `name` in place and returns how many values changed: bf16 and f16 to
/// nearest even (Inf beyond), tf32 by dropping 13 bits as the multiplier does; f32 changes nothing.
/// NaN stays NaN.
std::uint64_t convert_values(std::string_view name, std::span<float> x);

/// Values that convert_values has made as codes of that format.
gemm::operand values_operand(std::string_view name, std::span<const float> x, std::size_t rows,
                             std::size_t depth);

/// The bits of the finite or infinite float32 `x` as binary16, to nearest even, Inf beyond; a NaN
/// becomes 0x7fff.
std::uint16_t half_bits(float x);

}  // namespace mx::products
