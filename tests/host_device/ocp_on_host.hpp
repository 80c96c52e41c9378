// SPDX-License-Identifier: Apache-2.0
// The kernels' work for the OCP recipes of a launch, on the host with its own pointers.
#pragma once

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/lane_body.hpp"
#include "libmx/codec/cuda/row_body.hpp"
#include "libmx/codec/cuda/row_grid.hpp"

namespace mx::codec::cuda {

/// Calls work(slot, segment) for those in launch::marked under recipes from `first` up to `end`.
template <typename Work>
void for_each_marked(const launch& l, std::uint32_t first, std::uint32_t end, Work&& work) {
    const std::uint32_t count = l.marked == nullptr ? 0 : *l.marked;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t slot = l.marked[1 + i] / l.segment_count;
        if (slot >= first && slot < end) work(slot, l.marked[1 + i] % l.segment_count);
    }
}

/// The work of enqueue_dialects, on the host with its own pointers.
void dialects_on_host(const launch& l);

namespace detail {

template <bool coded, typename Values, typename Converter>
void rows_on_host(const launch& l, std::uint32_t first, std::uint32_t recipe) {
    const device_recipe& r = l.recipes[recipe];
    const row_recipe shared = row_recipe_of(r);
    quantize_rows(ocp_rows<coded, Values, Converter>(shared, r.params), l, recipe, first);
}

template <bool coded, typename Converter>
void rows_on_host(const launch& l, std::uint32_t first, std::uint32_t recipe) {
    if (l.values.type == tensor::dtype::bf16) {
        rows_on_host<coded, bf16_block<row_size>, Converter>(l, first, recipe);
    } else {
        rows_on_host<coded, float_block<row_size>, Converter>(l, first, recipe);
    }
}

template <typename Converter>
void rows_on_host(const launch& l, std::uint32_t first, std::uint32_t recipe) {
    const int body = l.recipes[recipe].body;
    if (body == segment_body) return;
    if (body < first_row_body + coded_rows) {
        rows_on_host<false, Converter>(l, first, recipe);
    } else {
        rows_on_host<true, Converter>(l, first, recipe);
    }
}

inline void segment_on_host(const launch& l, std::uint32_t segment, std::uint32_t recipe,
                            const std::uint16_t* marks) {
    const device_recipe& r = l.recipes[recipe];
    const device_segment& s = l.segments[segment];
    segment_tally& out = tally_of(l, recipe, segment);
    if (r.parts) {
        quantize_by_lanes<ocp_scales, ocp_lanes, true>(l, r, r.params, s, out, marks);
    } else {
        quantize_by_lanes<ocp_scales, ocp_lanes, false>(l, r, r.params, s, out, marks);
    }
}

}  // namespace detail

/// Converter: rounds the elements in the body of rows.
template <typename Converter>
void ocp_on_host(const launch& l) {
    if (l.marked != nullptr) *l.marked = 0;
    for (std::uint32_t r = 0; r < l.recipe_count; ++r) {
        for (std::uint32_t s = 0; s < l.segment_count; s += segments_at_once) {
            detail::rows_on_host<Converter>(l, s, r);
        }
        if (l.recipes[r].body != segment_body) continue;
        for (std::uint32_t s = 0; s < l.segment_count; ++s) {
            detail::segment_on_host(l, s, r, nullptr);
        }
    }
    for_each_marked(l, 0, l.recipe_count, [&](std::uint32_t r, std::uint32_t s) {
        detail::segment_on_host(l, s, r, marks_of(l, r, s));
    });
}

}  // namespace mx::codec::cuda
