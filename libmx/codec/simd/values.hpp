// SPDX-License-Identifier: Apache-2.0
// Values of codes, and float32 as bfloat16, in vectors; the same bits as the scalar code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/codec/block_params.hpp"

namespace mx::codec::simd {

/// to[i] = scale * p.value[codes[i]], the float32 product, for codes other than NaN and Inf.
void scaled_values(const plain_params& p, float scale, const std::uint8_t* codes, float* to,
                   std::size_t count);

/// bfloat16 bits, to nearest even; NaN becomes the quiet NaN of its sign.
void to_bf16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace mx::codec::simd
