// SPDX-License-Identifier: Apache-2.0
// Runs the block kernel over the blocks of a panel, or has a device do it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "libmx/pipeline/panels.hpp"
#include "libmx/pipeline/segment_places.hpp"
#include "libmx/quantize/block_kernel.hpp"
#include "libmx/quantize/dialect_bumps.hpp"
#include "libmx/quantize/segment_batch.hpp"

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

/// The same blocks by a batch of segments.
template <typename OnBlock>
void quantize_panel(quantize::segment_batch& batch, const quantize::block_params& params,
                    std::uint64_t tensor_id, const block::grid& g, const panel& where,
                    std::span<const float> x, block_scratch& scratch, OnBlock&& on_block) {
    std::vector<segment_in_panel> segments;
    std::vector<quantize::batch_segment> places;
    for_each_segment(g, where, [&](const segment_in_panel& s) {
        segments.push_back(s);
        places.push_back(batch_segment_of(s, g, where, tensor_id));
    });
    const quantize::stored_values values{tensor::dtype::f32, std::as_bytes(x).data(), where.cols};
    const quantize::batch_recipe recipe{&params, quantize::detail::stats, false,
                                        scratch.wants_values};
    const quantize::value_rectangle all{values, where.batches * where.rows, where.cols};
    const auto on_segment = [&](std::size_t i, std::size_t in_part) {
        const quantize::segment_place& place = places[i].place;
        const quantize::details_view d = batch.result(in_part, 0).details;
        for (std::size_t b = 0; b < d.blocks; ++b) {
            const quantize::block_extent e = quantize::extent_of(place, b);
            const std::span codes(d.codes + b * d.stride, e.size());
            const block_in_panel at{
                segments[i].index + b / place.grid_cols() * g.cols() + b % place.grid_cols(),
                quantize::place_of(place, e).first,
                (places[i].row + e.row) * where.cols + places[i].col + e.col,
                static_cast<int>(e.rows), static_cast<int>(e.cols)};
            if (scratch.wants_values) {
                if (scratch.values.size() < e.size()) scratch.values.resize(e.size());
                const std::span to = std::span(scratch.values).first(e.size());
                if (d.values != nullptr) {
                    std::copy_n(d.values + b * d.stride, e.size(), to.begin());
                } else {
                    quantize::dequantize_block(params, d.stats[b].scale, d.stats[b].offset, codes,
                                               to);
                }
            }
            on_block(at, d.stats[b], codes);
        }
    };
    quantize::run_in_parts(batch, all, places, {&recipe, 1}, on_segment);
}

}  // namespace mx::pipeline
