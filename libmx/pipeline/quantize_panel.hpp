// SPDX-License-Identifier: Apache-2.0
// Runs the block kernel over the blocks of a panel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "libmx/pipeline/panels.hpp"
#include "libmx/quantize/block_kernel.hpp"
#include "libmx/quantize/dialect_kernel.hpp"

namespace mx::pipeline {

/// Scratch of one thread.
struct block_scratch {
    std::vector<float> x;
    std::vector<std::uint8_t> codes;
    bool wants_values = false;
    std::vector<float> values;  ///< dequantized values of the block, where wanted
    std::vector<std::uint8_t> bump;
};

/// Quantizes every block of `g` in the panel `x`; calls on_block(place, stats, codes) for each and
/// on_segment() after each segment.
template <typename OnBlock, typename OnSegment>
void quantize_panel(const quantize::block_params& params, std::uint64_t tensor_id,
                    const block::grid& g, const panel& where, std::span<const float> x,
                    block_scratch& scratch, OnBlock&& on_block, OnSegment&& on_segment) {
    const block::segmentation segments = block::segments_of(g);
    const auto one_block = [&](const block_in_panel& b) {
        const auto n = static_cast<std::size_t>(b.rows) * static_cast<std::size_t>(b.cols);
        if (scratch.codes.size() < n) scratch.codes.resize(n);
        const std::span<std::uint8_t> codes = std::span(scratch.codes).first(n);
        std::span<const float> values = x.subspan(b.at, static_cast<std::size_t>(b.cols));
        if (b.rows > 1) {
            if (scratch.x.size() < n) scratch.x.resize(n);
            for (int r = 0; r < b.rows; ++r) {
                const auto row = static_cast<std::size_t>(r);
                const auto cols = static_cast<std::size_t>(b.cols);
                const float* from = x.data() + b.at + row * where.cols;
                std::copy(from, from + cols,
                          scratch.x.begin() + static_cast<std::ptrdiff_t>(row * cols));
            }
            values = std::span(scratch.x).first(n);
        }
        quantize::block_place place{tensor_id, b.first, g.over.cols, b.cols};
        if (params.bumps) {
            // Panels hold whole rows here (grid::whole_rows).
            if (b.at % where.cols == 0) {
                scratch.bump.resize(g.block_cols);
                quantize::bumps_of_row(x.subspan(b.at, where.cols), scratch.bump);
            }
            place.bump = scratch.bump.data();
        }
        if (scratch.wants_values && scratch.values.size() < n) scratch.values.resize(n);
        const std::span<float> d = std::span(scratch.values).first(scratch.wants_values ? n : 0);
        on_block(b, quantize::quantize_block(params, values, place, codes, d), codes);
    };
    for_each_block(g, segments, where, one_block, on_segment);
}

}  // namespace mx::pipeline
