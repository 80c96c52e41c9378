// SPDX-License-Identifier: Apache-2.0
// The scale of a block where scales are no powers of two: UE4M3 under a tensor scale or alone
// (NVFP4), and float32 (FP8 block scaling).
#pragma once

#include <cstdint>

#include "libmx/quantize/block_params.hpp"

namespace mx::quantize {

/// A chosen scale; `value` is NaN for a poisoned block.
struct fractional_scale {
    std::uint8_t code;  ///< UE4M3 code; of a float32 scale its exponent field (255: NaN)
    float value;        ///< the block's own scale, without the tensor's
    float factor;       ///< what the dialect's float32 arithmetic multiplies or divides by
};

/// Whether the convention of `p` sees a NaN in a block as its maximum (else it is skipped).
bool nan_decides(const block_params& p);

/// The scale of a block whose maximum has the float32 bits `amax_bits`, Inf and NaN allowed.
/// `target` is the element the maximum should become (four-over-six asks for 4), `p.largest`
/// otherwise; conventions other than exact ignore it.
///
/// UE4M3, with g the tensor scale (1 without one), all operations in float32 and left to right:
/// - exact: s = e4m3(amax / (target g)), the exact quotient rounded once, at most 448; a block that
///   holds NaN or Inf gets code 127;
/// - torchao: s = e4m3(clamp(amax / 6 / g, 2^-6, 448)); factor (1 / g) / s
///   (pytorch/ao@36027d8);
/// - te: s = e4m3(amax * (S * (1 / 6))), S = 1 / g as stored; factor min(1 / (s * (1 / S)), largest
///   float32), 0 for s = 0 (NVIDIA/TransformerEngine@d0067d0);
/// - ggml: s as its own conversion gives it, see ggml_ue4m3.hpp (ggml-org/llama.cpp@0096646);
/// - modelopt: s = e4m3(amax / (6 * g)) without saturation, 1 for a zero; divisor s * g
///   (NVIDIA/TensorRT-Model-Optimizer@5a4242f);
/// - compressed-tensors: s = e4m3(G * (amax / 6)), G as stored, 2^-3 for a zero; divisor s / G
///   (vllm-project/compressed-tensors@ac8e2ba).
///
/// float32:
/// - exact: S = float32(amax / M), at least 2^-149; amax-pow2: 2^ceil(log2(amax / M)) of the exact
///   quotient; 1 for a block of zeros; NaN for one that holds NaN or Inf;
/// - te: factor M / amax, the largest float32 where that overflows, for amax-pow2 its mantissa
///   cleared; 1 for amax 0 or Inf; S = 1 / factor (NVIDIA/TransformerEngine@d0067d0).
fractional_scale choose_scale(const block_params& p, std::uint32_t amax_bits, float target);

/// The scale as a product of two float32 factors, S = block * tensor exactly.
struct scale_product {
    float block;
    float tensor;
};
scale_product product_of(const block_params& p, float scale);

}  // namespace mx::quantize
