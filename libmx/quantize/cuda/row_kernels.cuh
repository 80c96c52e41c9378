// SPDX-License-Identifier: Apache-2.0
// The kernel around the body of rows.
#pragma once

#include <cuda_runtime.h>

#include "libmx/quantize/cuda/kernels.hpp"
#include "libmx/quantize/cuda/row_body.hpp"

namespace mx::quantize::cuda {

inline constexpr unsigned row_warps = 4;

// A warp for two segments; of the recipes those whose body is among `bodies`. Recipes of a pair lie
// beside each other, so that they find its values in the cache.
template <typename Values, typename Converter>
__global__ void __launch_bounds__(row_warps* lane_count, 4)
    quantize_row_segments(const __grid_constant__ launch l, std::uint32_t bodies) {
    const unsigned r = blockIdx.x % l.recipe_count;
    const unsigned pair = blockIdx.x / l.recipe_count * row_warps + threadIdx.x / lane_count;
    const std::uint32_t s = pair * segments_at_once;
    const device_recipe& recipe = l.recipes[r];
    if (s >= l.segment_count || (bodies >> recipe.body & 1u) == 0) return;
    quantize_rows<Values, Converter>(recipe.params, l.segments + s,
                                     min(segments_at_once, l.segment_count - s), l.values,
                                     l.stats + std::uint64_t{r} * l.segment_count + s);
}

template <typename Converter>
int enqueue_rows_by(const launch& l, std::uint32_t bodies, void* stream) {
    const std::uint32_t pairs = (l.segment_count + segments_at_once - 1) / segments_at_once;
    const unsigned blocks = (pairs + row_warps - 1) / row_warps * l.recipe_count;
    const auto on = static_cast<cudaStream_t>(stream);
    if (l.values.type == tensor::dtype::bf16) {
        quantize_row_segments<bf16_block, Converter>
            <<<blocks, row_warps * lane_count, 0, on>>>(l, bodies);
    } else {
        quantize_row_segments<float_block, Converter>
            <<<blocks, row_warps * lane_count, 0, on>>>(l, bodies);
    }
    return cudaGetLastError();
}

}  // namespace mx::quantize::cuda
