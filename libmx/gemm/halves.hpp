// SPDX-License-Identifier: Apache-2.0
// fp8 as chips without an instruction for it multiply it (intake::halves): every 32-bit register
// of four codes is widened to f16 in its lower and its upper half, and an instruction of 2 L
// products is two f16 steps of L.
#pragma once

#include <cstddef>

#include "libmx/gemm/operand.hpp"

namespace mx::gemm {

/// `x` (without scales, every value of it an f16) as f16 in the order in which steps of `length`
/// products, an even number, take it: of 2 length neighbours those with k mod 4 = 0 and 1, then the
/// others. k is filled with zeros up to whole instructions.
operand in_halves(const operand& x, std::size_t length);

}  // namespace mx::gemm
