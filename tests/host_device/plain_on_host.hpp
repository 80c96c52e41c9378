// SPDX-License-Identifier: Apache-2.0
// The kernels' work for the plain recipes of a launch, on the host with its own pointers.
#pragma once

#include <algorithm>

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/row_body.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/segment_body.hpp"

namespace mx::codec::cuda {

/// The work of enqueue_general, on the host with its own pointers.
void general_on_host(const launch& l);

namespace detail {

template <bool coded, typename Converter>
void rows_on_host(const launch& l, const device_recipe& r, const device_segment* segments,
                  std::uint32_t count, segment_tally* out) {
    if (l.values.type == tensor::dtype::bf16) {
        quantize_rows<coded, bf16_block, Converter>(r.params, segments, count, l.values, r.blocks,
                                                    *r.totals, out);
    } else {
        quantize_rows<coded, float_block, Converter>(r.params, segments, count, l.values, r.blocks,
                                                     *r.totals, out);
    }
}

template <typename Converter>
void one_on_host(const launch& l, std::uint32_t first, std::uint32_t recipe) {
    const device_recipe& r = l.recipes[recipe];
    const device_segment* const segments = l.segments + first;
    const std::uint32_t count = std::min(segments_at_once, l.segment_count - first);
    segment_tally* const out = l.tallies + std::uint64_t{recipe} * l.segment_count + first;
    if (r.body == segment_body) {
        for (std::uint32_t i = 0; i < count; ++i) {
            if (r.parts) {
                quantize_segment<true>(r.params, segments[i], l.values, r.blocks, *r.totals,
                                       out[i]);
            } else {
                quantize_segment<false>(r.params, segments[i], l.values, r.blocks, *r.totals,
                                        out[i]);
            }
        }
    } else if (r.body < first_row_body + coded_rows) {
        rows_on_host<false, Converter>(l, r, segments, count, out);
    } else {
        rows_on_host<true, Converter>(l, r, segments, count, out);
    }
}

}  // namespace detail

/// Converter: rounds the elements in the body of rows.
template <typename Converter>
void plain_on_host(const launch& l) {
    for (std::uint32_t s = 0; s < l.segment_count; s += segments_at_once) {
        for (std::uint32_t r = 0; r < l.recipe_count; ++r) detail::one_on_host<Converter>(l, s, r);
    }
}

}  // namespace mx::codec::cuda
