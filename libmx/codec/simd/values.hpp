// SPDX-License-Identifier: Apache-2.0
// Values of codes, conversions between float32 and bfloat16, and maxima, in vectors; the same bits
// as the scalar code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libmx/codec/block_params.hpp"
#include "libmx/codec/segment.hpp"

namespace mx::codec::simd {

/// to[i] = scales[i / size] * p.value[codes[i]], the float32 product, in `blocks` blocks of `size`
/// elements, for codes other than NaN and Inf.
void scaled_values(const ocp_params& p, const float* scales, std::size_t blocks, std::size_t size,
                   const std::uint8_t* codes, float* to);

/// bfloat16 bits, to nearest even; NaN becomes the quiet NaN of its sign.
void to_bf16(const float* from, std::uint16_t* to, std::size_t count);

/// The numbers of bfloat16 bits.
void from_bf16(const std::uint16_t* from, float* to, std::size_t count);

/// The float32 bits of the largest finite magnitude among `count` consecutive values; 0 if there
/// is none.
std::uint32_t finite_amax(const stored_values& values, std::size_t count);

}  // namespace mx::codec::simd
