// SPDX-License-Identifier: Apache-2.0
// Quantizing one block under any recipe that is not plain, for host and device.
#pragma once

#include "libmx/codec/dialect_block.hpp"
#include "libmx/codec/fractional_block.hpp"

namespace mx::codec {

/// quantize_block for such recipes; `codes` may be empty where nobody wants them, nor `values`.
MX_HD inline block::block_stats quantize_general(const block_params& p, std::span<const float> x,
                                                 const block_place& place,
                                                 std::span<std::uint8_t> codes,
                                                 std::span<float> values, bool parts) {
    if (p.scale_format->power_of_two()) {
        return quantize_dialect_block(p, x, place, codes, values, parts);
    }
    const block::block_stats out = quantize_fractional(p, x, place, codes, parts);
    const fractional_decoder decoder(p, out.scale);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = decoder.decode(codes[i]);
    return out;
}

}  // namespace mx::codec
