// SPDX-License-Identifier: Apache-2.0
// What codes stand for, and float32 as bfloat16, in vectors: the bits of the scalar code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/codec/block_params.hpp"

namespace mx::codec::simd {

/// to[i] = scale * p.value[codes[i]], the float32 product, of codes that are no NaN or Inf.
void scaled_values(const plain_params& p, float scale, const std::uint8_t* codes, float* to,
                   std::size_t count);

/// bfloat16 bits, to nearest even; NaN becomes the quiet one of its sign.
void to_bf16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace mx::codec::simd
