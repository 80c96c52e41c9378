// SPDX-License-Identifier: Apache-2.0
// Values of codes, and float32 as bfloat16, in vectors; the same bits as the scalar code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/codec/block_params.hpp"

namespace mx::codec::simd {

/// to[i] = scales[i / size] * p.value[codes[i]], the float32 product, in `blocks` blocks of `size`
/// elements, for codes other than NaN and Inf.
void scaled_values(const plain_params& p, const float* scales, std::size_t blocks, std::size_t size,
                   const std::uint8_t* codes, float* to);

/// bfloat16 bits, to nearest even; NaN becomes the quiet NaN of its sign.
void to_bf16(const float* from, std::uint16_t* to, std::size_t count);

}  // namespace mx::codec::simd
