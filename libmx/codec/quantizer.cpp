// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/quantizer.hpp"

#include <algorithm>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/plain_block.hpp"

namespace mx::codec {

float scale_of_block(const block_params& p, const block_results& d, std::size_t block) {
    return p.plain ? scale_of_code(d.scale_code[block]) : d.stats[block].scale;
}

void values_of_block(const block_params& p, const block_results& d, std::size_t block,
                     std::span<float> values) {
    const std::size_t at = block * d.stride;
    if (d.values != nullptr) {
        std::copy_n(d.values + at, values.size(), values.begin());
        return;
    }
    dequantize_block(p, scale_of_block(p, d, block), d.offset[block],
                     std::span(d.codes + at, values.size()), values);
}

}  // namespace mx::codec
