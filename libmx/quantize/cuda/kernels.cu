// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/cuda/kernels.hpp"

#include <cuda_runtime.h>

#include "libmx/quantize/cuda/segment_body.hpp"

namespace mx::quantize::cuda {
namespace {

constexpr unsigned warps_per_block = 4;

// The recipe lies in shared memory: its numbers are told to all lanes at once, and its table of
// values is looked up lane by lane.
__global__ void __launch_bounds__(warps_per_block* lane_count) quantize_segments(launch l) {
    __shared__ plain_params shared[warps_per_block];
    static_assert(sizeof(plain_params) % sizeof(std::uint32_t) == 0);
    const unsigned warp = threadIdx.x / lane_count;
    const unsigned lane = threadIdx.x % lane_count;
    const std::uint64_t job = std::uint64_t{blockIdx.x} * warps_per_block + warp;
    // Recipes of a segment lie beside each other, so that they find its values in the cache.
    const auto s = static_cast<std::uint32_t>(job / l.recipe_count);
    const auto r = static_cast<std::uint32_t>(job % l.recipe_count);
    if (s >= l.segment_count) return;
    const device_recipe& recipe = l.recipes[r];
    const auto* from = reinterpret_cast<const std::uint32_t*>(&recipe.params);
    auto* to = reinterpret_cast<std::uint32_t*>(&shared[warp]);
    for (unsigned i = lane; i < sizeof(plain_params) / sizeof(std::uint32_t); i += lane_count) {
        to[i] = from[i];
    }
    __syncwarp();
    block::segment_stats& out = l.stats[std::uint64_t{r} * l.segment_count + s];
    if (recipe.parts) {
        quantize_segment<true>(shared[warp], l.segments[s], l.values, recipe.blocks, out);
    } else {
        quantize_segment<false>(shared[warp], l.segments[s], l.values, recipe.blocks, out);
    }
}

}  // namespace

int enqueue_plain(const launch& l, void* stream) {
    const std::uint64_t jobs = std::uint64_t{l.segment_count} * l.recipe_count;
    if (jobs == 0) return cudaSuccess;
    const auto blocks = static_cast<unsigned>((jobs + warps_per_block - 1) / warps_per_block);
    quantize_segments<<<blocks, warps_per_block * lane_count, 0,
                        static_cast<cudaStream_t>(stream)>>>(l);
    return cudaGetLastError();
}

int has_code_for_device() {
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes, quantize_segments);
}

}  // namespace mx::quantize::cuda
