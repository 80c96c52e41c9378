// SPDX-License-Identifier: Apache-2.0
// A panel under one recipe, laid out as its tensor's arrays are: what writes codes, scales and
// values.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "libmx/engine/panel_quantizer.hpp"

namespace mx::engine {

/// Elements of the panel, matrix by matrix, row by row.
struct quantized_panel {
    std::vector<std::uint8_t> codes;  ///< empty unless they are wanted
    std::vector<float> values;        ///< dequantized; empty unless they are wanted
};

/// Consecutive blocks of a tensor's grid: the first one's index there, its place in `blocks`, and
/// how many.
using on_blocks = std::function<void(std::uint64_t index, const codec::block_results& blocks,
                                     std::size_t first, std::size_t count)>;

/// Quantizes a panel into `to`, whose vectors have the size of the panel or are empty, and reports
/// the scales and offsets of its blocks, of which detail_for_scales is known.
void quantize_panel(panel_quantizer& by, const codec::block_params& params, const block::grid& g,
                    const panel& where, const codec::stored_values& values, std::uint64_t tensor_id,
                    quantized_panel& to, const on_blocks& report);

}  // namespace mx::engine
