// SPDX-License-Identifier: Apache-2.0
// The kernel that runs the body of rows.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/row_body.hpp"
#include "libmx/codec/cuda/row_grid.hpp"

namespace mx::codec::cuda {

inline constexpr unsigned row_warps = 4;

// One warp per two segments; only recipes with a body in `bodies`. Recipes of a pair are adjacent,
// so that its values are in the cache.
template <bool coded, typename Values, typename Converter>
__global__ void __launch_bounds__(row_warps* lane_count, 4)
    quantize_row_segments(const __grid_constant__ launch l, std::uint32_t bodies) {
    __shared__ row_recipe shared;
    const unsigned r = blockIdx.x % l.recipe_count;
    const unsigned pair = blockIdx.x / l.recipe_count * row_warps + threadIdx.x / lane_count;
    const std::uint32_t s = pair * segments_at_once;
    if ((bodies >> l.recipes[r].body & 1u) == 0) return;
    if (threadIdx.x == 0) shared = row_recipe_of(l.recipes[r]);
    __syncthreads();
    if (s >= l.segment_count) return;
    quantize_rows(ocp_rows<coded, Values, Converter>(shared, l.recipes[r].params), l, r, s);
}

template <bool coded, typename Values, typename Converter>
void start_rows(const launch& l, std::uint32_t bodies, void* stream) {
    if (bodies == 0) return;
    const std::uint32_t pairs = (l.segment_count + segments_at_once - 1) / segments_at_once;
    const unsigned blocks = (pairs + row_warps - 1) / row_warps * l.recipe_count;
    quantize_row_segments<coded, Values, Converter>
        <<<blocks, row_warps * lane_count, 0, static_cast<cudaStream_t>(stream)>>>(l, bodies);
}

// Another converter is not used for the figures of bf16 (kernels.cu).
template <typename Converter>
int enqueue_rows_by(const launch& l, std::uint32_t bodies, void* stream) {
    const std::uint32_t without = bodies & row_bodies;
    const std::uint32_t coded = bodies & row_bodies << coded_rows;
    if (l.values.type == tensor::dtype::bf16) {
        if constexpr (std::is_same_v<Converter, grid_converter>) {
            start_rows<false, bf16_block<row_size>, Converter>(l, without, stream);
        }
        start_rows<true, bf16_block<row_size>, Converter>(l, coded, stream);
    } else {
        start_rows<false, float_block<row_size>, Converter>(l, without, stream);
        start_rows<true, float_block<row_size>, Converter>(l, coded, stream);
    }
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
