// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "libmx/codec/cuda/lane_body.hpp"
#include "libmx/codec/cuda/shared_params.cuh"

namespace mx::codec::cuda {
namespace {

constexpr unsigned warps_per_block = 4;
constexpr unsigned threads = warps_per_block * lane_count;

__global__ void __launch_bounds__(threads) raise_exponents_of_segments(launch l) {
    raise_exponents(l, l.segments[blockIdx.x], threadIdx.x, threads);
}

// Called by all lanes of a warp.
template <typename Family, int lanes>
__device__ void quantize_one(const launch& l, std::uint32_t r, std::uint32_t s,
                             block_params& shared, const std::uint16_t* marks) {
    const dialect_recipe& recipe = l.dialects[r];
    copy_to_shared(recipe.params, shared);
    quantize_by_lanes<Family, lanes>(l, recipe, shared, l.segments[s],
                                    tally_of(l, l.recipe_count + r, s), marks);
}

// A warp per segment and recipe without a nvfp4_table. Recipes of a segment are adjacent, so that
// its values are in the cache.
template <typename Family, int lanes>
__global__ void __launch_bounds__(threads, 4) quantize_dialect_segments(launch l) {
    __shared__ block_params shared[warps_per_block];
    const unsigned warp = threadIdx.x / lane_count;
    const std::uint64_t job = std::uint64_t{blockIdx.x} * warps_per_block + warp;
    const auto s = static_cast<std::uint32_t>(job / l.dialect_count);
    const auto r = static_cast<std::uint32_t>(job % l.dialect_count);
    if (s >= l.segment_count || l.dialects[r].nvfp4 != nullptr) return;
    constexpr bool of_powers = std::is_same_v<Family, power_scales>;
    if (l.dialects[r].params.scale_format->power_of_two() != of_powers) return;
    quantize_one<Family, lanes>(l, r, s, shared[warp], nullptr);
}

// Those in the list of launch::marked whose recipes have a nvfp4_table: rows take small blocks.
__global__ void __launch_bounds__(threads, 4) quantize_marked_segments(launch l) {
    __shared__ block_params shared[warps_per_block];
    const unsigned warp = threadIdx.x / lane_count;
    for (std::uint32_t i = blockIdx.x * warps_per_block + warp; i < *l.marked;
         i += gridDim.x * warps_per_block) {
        const std::uint32_t slot = l.marked[1 + i] / l.segment_count;
        const std::uint32_t s = l.marked[1 + i] % l.segment_count;
        if (slot < l.recipe_count) continue;  // kernels.cu
        __syncwarp();                         // no lane reads the last recipe any more
        quantize_one<float_scales, 1>(l, slot - l.recipe_count, s, shared[warp],
                                       marks_of(l, slot, s));
    }
}

unsigned blocks_for(const launch& l) {
    const std::uint64_t jobs = std::uint64_t{l.segment_count} * l.dialect_count;
    return static_cast<unsigned>((jobs + warps_per_block - 1) / warps_per_block);
}

template <typename Family>
void enqueue_family(const launch& l, cudaStream_t stream) {
    with_lanes(l.stride, [&](auto count) {
        constexpr int lanes = count();
        quantize_dialect_segments<Family, lanes><<<blocks_for(l), threads, 0, stream>>>(l);
    });
}

// What rows left.
int enqueue_marked(const launch& l, cudaStream_t stream) {
    unsigned blocks = blocks_for(l);
    const int code = lower_to_resident(blocks);
    if (code != cudaSuccess) return code;
    quantize_marked_segments<<<blocks, threads, 0, stream>>>(l);
    return cudaGetLastError();
}

__global__ void forget_marks(std::uint32_t* marked) { *marked = 0; }

}  // namespace

int enqueue_dialects(const launch& l, void* stream_handle) {
    if (l.dialect_count == 0 || l.segment_count == 0) return cudaSuccess;
    auto* const stream = static_cast<cudaStream_t>(stream_handle);
    if (l.raised != nullptr) {
        raise_exponents_of_segments<<<l.segment_count, threads, 0, stream>>>(l);
    }
    if (l.powers) enqueue_family<power_scales>(l, stream);
    if (l.floats) enqueue_family<float_scales>(l, stream);
    const int code = cudaGetLastError();
    return code == cudaSuccess && l.nvfp4_rows ? enqueue_marked(l, stream) : code;
}

int enqueue(const launch& l, void* stream) {
    if (l.marked != nullptr) {
        forget_marks<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(l.marked);
    }
    int code = enqueue_codes(l, stream);
    if (code == cudaSuccess) code = enqueue_ocp(l, stream);
    if (code == cudaSuccess) code = enqueue_nvfp4(l, stream);
    return code != cudaSuccess ? code : enqueue_dialects(l, stream);
}

}  // namespace mx::codec::cuda
