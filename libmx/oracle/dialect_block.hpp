// SPDX-License-Identifier: Apache-2.0
// quantize_block (block.hpp) for dialects other than ocp and for scales that are no powers of two.
#pragma once

#include "libmx/oracle/block.hpp"

namespace mx::oracle {

quantized_block quantize_dialect_block(const recipe& r, const value_list& list,
                                       std::span<const float> x, const block_context& context);

}  // namespace mx::oracle
