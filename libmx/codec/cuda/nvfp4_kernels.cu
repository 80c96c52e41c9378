// SPDX-License-Identifier: Apache-2.0
// Rows under NVFP4, after the limits of their recipes.
#include <cuda_runtime.h>

#include "libmx/codec/cuda/kernels.hpp"
#include "libmx/codec/cuda/nvfp4_body.hpp"

namespace mx::codec::cuda {
namespace {

constexpr unsigned warps_per_block = 4;
constexpr unsigned threads = warps_per_block * lane_count;
constexpr unsigned blocks_of_table = (limits_of_table + threads - 1) / threads;

__global__ void __launch_bounds__(threads) find_limits(launch l) {
    const dialect_recipe& r = l.dialects[blockIdx.x / blocks_of_table];
    const unsigned index = blockIdx.x % blocks_of_table * threads + threadIdx.x;
    if (r.nvfp4 != nullptr && index < limits_of_table) find_limit(r.params, index, *r.nvfp4);
}

// As quantize_row_segments.
template <typename Values>
__global__ void __launch_bounds__(threads, 4)
    quantize_nvfp4_segments(const __grid_constant__ launch l) {
    __shared__ nvfp4_recipe shared;
    const unsigned r = blockIdx.x % l.dialect_count;
    const unsigned pair = blockIdx.x / l.dialect_count * warps_per_block + threadIdx.x / lane_count;
    const std::uint32_t s = pair * segments_at_once;
    const dialect_recipe& recipe = l.dialects[r];
    if (recipe.nvfp4 == nullptr) return;
    shared.copy<Values>(recipe, threadIdx.x, threads);
    __syncthreads();
    if (s >= l.segment_count) return;
    quantize_rows(nvfp4_rows<Values>(shared), l, l.recipe_count + r, s);
}

template <typename Values>
void start_nvfp4(const launch& l, cudaStream_t stream) {
    const std::uint32_t pairs = (l.segment_count + segments_at_once - 1) / segments_at_once;
    const unsigned blocks = (pairs + warps_per_block - 1) / warps_per_block * l.dialect_count;
    quantize_nvfp4_segments<Values><<<blocks, threads, 0, stream>>>(l);
}

}  // namespace

int enqueue_nvfp4(const launch& l, void* stream_handle) {
    if (!l.nvfp4_rows || l.segment_count == 0) return cudaSuccess;
    auto* const stream = static_cast<cudaStream_t>(stream_handle);
    find_limits<<<l.dialect_count * blocks_of_table, threads, 0, stream>>>(l);
    if (l.values.type == tensor::dtype::bf16) {
        start_nvfp4<bf16_block<nvfp4_size>>(l, stream);
    } else {
        start_nvfp4<float_block<nvfp4_size>>(l, stream);
    }
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
