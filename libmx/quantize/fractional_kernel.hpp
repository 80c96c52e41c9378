// SPDX-License-Identifier: Apache-2.0
// Quantizing one block whose scale is no power of two.
#pragma once

#include <cstdint>
#include <span>

#include "libmx/format/encode_quotient.hpp"
#include "libmx/quantize/block_kernel.hpp"
#include "libmx/quantize/fractional_scale.hpp"

namespace mx::quantize {

/// Elements of a block under a chosen scale.
class fractional_encoder {
  public:
    fractional_encoder(const block_params& p, const fractional_scale& scale,
                       const block_place& place);

    struct element {
        format::encoded exact;  ///< x / S rounded exactly: decides what overflows and clamps
        std::uint8_t code;
        std::uint32_t magnitude;  ///< of the code
        double value;             ///< the exact S * q
    };
    /// The finite `x` at `position` of the block.
    element encode(float x, int position) const;

    /// The code of a NaN or Inf among elements that keep a scale.
    std::uint8_t special_code(float x) const;

  private:
    std::uint32_t draw(int position) const;
    std::uint8_t dialect_code(float x, std::uint32_t draw) const;

    const block_params& p_;
    const fractional_scale& scale_;
    const block_place& place_;
    bool zero_;  ///< S is 0 (or no number, from a file): y is undefined, q as the dialect says
    format::exact_scale exact_{};
    double value_ = 0;
};

/// quantize_block for scale formats that are not powers of two. Exact arithmetic under dialect ocp,
/// the dialect's float32 operations otherwise; either way y = x / S, with S the exact product of
/// block and tensor scale, decides what overflows and what clamps, and d = S * q is exact: at most
/// 40 bits. Sums are in double, in units of x, in the shape of sum_tree.hpp. A zero scale makes
/// every element a zero of its sign; non-zero ones count as underflow.
block::block_stats quantize_fractional(const block_params& p, std::span<const float> x,
                                       const block_place& place, std::span<std::uint8_t> codes,
                                       bool parts);

/// dequantize_block for them. ocp: the exact product rounded once. Others: float32(q * float32(s
/// g)), for compressed-tensors float32(q * float32(s / G)).
void dequantize_fractional(const block_params& p, float scale, std::span<const std::uint8_t> codes,
                           std::span<float> values);

}  // namespace mx::quantize
