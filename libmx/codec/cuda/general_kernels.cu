// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "libmx/codec/cuda/general_body.hpp"

namespace mx::codec::cuda {
namespace {

constexpr unsigned threads = 128;

__global__ void __launch_bounds__(threads) pack_segments(launch l) {
    pack_segment(l, l.segments[blockIdx.x], threadIdx.x, threads);
}

__global__ void __launch_bounds__(threads) raise_exponents_of_segments(launch l) {
    raise_exponents(l, l.segments[blockIdx.x], threadIdx.x, threads);
}

// Recipes over the same blocks are adjacent, so that their values are in the cache.
__global__ void __launch_bounds__(threads, 4) quantize_blocks(launch l) {
    const unsigned tile = blockIdx.x / l.general_count;
    const general_recipe& recipe = l.general[blockIdx.x % l.general_count];
    const std::uint64_t first =
        std::uint64_t{tile} * threads + threadIdx.x / lane_count * lane_count;
    if (first < l.block_count) quantize_general(l, recipe, first);
}

// One warp adds up a segment under a recipe.
__global__ void __launch_bounds__(threads) add_segments(launch l) {
    const std::uint64_t job =
        std::uint64_t{blockIdx.x} * (threads / lane_count) + threadIdx.x / lane_count;
    const auto s = static_cast<std::uint32_t>(job / l.general_count);
    const auto r = static_cast<std::uint32_t>(job % l.general_count);
    if (s < l.segment_count) add_segment(l, l.general[r], s);
}

unsigned tiles(std::uint64_t jobs, std::uint64_t of) {
    return static_cast<unsigned>((jobs + of - 1) / of);
}

}  // namespace

int enqueue_general(const launch& l, void* stream_handle) {
    if (l.general_count == 0 || l.block_count == 0) return cudaSuccess;
    auto* const stream = static_cast<cudaStream_t>(stream_handle);
    pack_segments<<<l.segment_count, threads, 0, stream>>>(l);
    if (l.raised != nullptr) {
        raise_exponents_of_segments<<<l.segment_count, threads, 0, stream>>>(l);
    }
    quantize_blocks<<<tiles(l.block_count, threads) * l.general_count, threads, 0, stream>>>(l);
    const std::uint64_t sums = std::uint64_t{l.segment_count} * l.general_count;
    add_segments<<<tiles(sums, threads / lane_count), threads, 0, stream>>>(l);
    return cudaGetLastError();
}

int enqueue(const launch& l, void* stream) {
    int code = enqueue_codes(l, stream);
    if (code == cudaSuccess) code = enqueue_plain(l, stream);
    return code != cudaSuccess ? code : enqueue_general(l, stream);
}

}  // namespace mx::codec::cuda
