// SPDX-License-Identifier: Apache-2.0
// Values as operands in the wider input formats of multipliers: float32, tf32, bf16, f16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "libmx/gemm/operand.hpp"

namespace mx::products {

/// Encodes values that format::round_to_wide has rounded as codes of that format.
gemm::operand values_operand(std::string_view name, std::span<const float> x, std::size_t rows,
                             std::size_t depth);

}  // namespace mx::products
