// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "libmx/codec/cuda/general_body.hpp"
#include "libmx/codec/cuda/shared_params.cuh"

namespace mx::codec::cuda {
namespace {

constexpr unsigned warps_per_block = 4;
constexpr unsigned threads = warps_per_block * lane_count;

__global__ void __launch_bounds__(threads) raise_exponents_of_segments(launch l) {
    raise_exponents(l, l.segments[blockIdx.x], threadIdx.x, threads);
}

// As quantize_segments: all segments under the recipes without a number_table, or those in the list.
template <typename Family, int lanes, bool marked>
__global__ void __launch_bounds__(threads, 4) quantize_general_segments(launch l) {
    __shared__ block_params shared[warps_per_block];
    const unsigned warp = threadIdx.x / lane_count;
    const std::uint64_t jobs =
        marked ? *l.marked : std::uint64_t{l.segment_count} * l.general_count;
    for (std::uint64_t job = std::uint64_t{blockIdx.x} * warps_per_block + warp; job < jobs;
         job += std::uint64_t{gridDim.x} * warps_per_block) {
        std::uint32_t s, r;
        if constexpr (marked) {
            const std::uint32_t slot = l.marked[1 + job] / l.segment_count;
            if (slot < l.recipe_count) continue;  // kernels.cu
            r = slot - l.recipe_count;
            s = l.marked[1 + job] % l.segment_count;
        } else {
            s = static_cast<std::uint32_t>(job / l.general_count);
            r = static_cast<std::uint32_t>(job % l.general_count);
        }
        const general_recipe& recipe = l.general[r];
        constexpr bool of_powers = std::is_same_v<Family, power_scales>;
        if (!marked && (recipe.numbers != nullptr ||
                        recipe.params.scale_format->power_of_two() != of_powers)) {
            continue;
        }
        __syncwarp();  // no lane reads the last recipe any more
        copy_to_shared(recipe.params, shared[warp]);
        const std::uint32_t slot = l.recipe_count + r;
        quantize_general<Family, lanes>(l, recipe, shared[warp], l.segments[s],
                                        tally_of(l, slot, s),
                                        marked ? marks_of(l, slot, s) : nullptr);
    }
}

unsigned blocks_for(const launch& l) {
    const std::uint64_t jobs = std::uint64_t{l.segment_count} * l.general_count;
    return static_cast<unsigned>((jobs + warps_per_block - 1) / warps_per_block);
}

template <typename Family>
void enqueue_family(const launch& l, cudaStream_t stream) {
    with_lanes(l.stride, [&](auto count) {
        constexpr int lanes = count();
        quantize_general_segments<Family, lanes, false><<<blocks_for(l), threads, 0, stream>>>(l);
    });
}

// What rows left: they take small blocks only.
int enqueue_marked(const launch& l, cudaStream_t stream) {
    unsigned blocks = blocks_for(l);
    const int code = lower_to_resident(blocks);
    if (code != cudaSuccess) return code;
    quantize_general_segments<number_scales, 1, true><<<blocks, threads, 0, stream>>>(l);
    return cudaGetLastError();
}

__global__ void forget_marks(std::uint32_t* marked) { *marked = 0; }

}  // namespace

int enqueue_general(const launch& l, void* stream_handle) {
    if (l.general_count == 0 || l.segment_count == 0) return cudaSuccess;
    auto* const stream = static_cast<cudaStream_t>(stream_handle);
    if (l.raised != nullptr) {
        raise_exponents_of_segments<<<l.segment_count, threads, 0, stream>>>(l);
    }
    if (l.powers) enqueue_family<power_scales>(l, stream);
    if (l.numbers) enqueue_family<number_scales>(l, stream);
    const int code = cudaGetLastError();
    return code == cudaSuccess && l.number_rows ? enqueue_marked(l, stream) : code;
}

int enqueue(const launch& l, void* stream) {
    if (l.marked != nullptr) {
        forget_marks<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(l.marked);
    }
    int code = enqueue_codes(l, stream);
    if (code == cudaSuccess) code = enqueue_plain(l, stream);
    if (code == cudaSuccess) code = enqueue_numbers(l, stream);
    return code != cudaSuccess ? code : enqueue_general(l, stream);
}

}  // namespace mx::codec::cuda
