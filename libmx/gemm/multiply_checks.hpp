// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/gemm/operand.hpp"

namespace mx::gemm {

/// Throws base::error (usage) when the operands are misshapen, do not fit each other or `c`, when
/// the model does not take them (naming one that does), or when the arrangement makes no sense.
void require_fit(const operand& a, const operand& b, std::span<const std::uint32_t> c,
                 const accumulator& m, const arrangement& how);

}  // namespace mx::gemm
