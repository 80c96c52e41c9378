// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include <algorithm>

#include "libmx/codec/cuda/word_kernels.hpp"

namespace mx::codec::cuda {
namespace {

constexpr unsigned lanes = 32;
constexpr unsigned threads = 1024;
constexpr unsigned least_warps = 128;  // of a block, one after the other: 2^16 words
constexpr unsigned pairs = lane_words / 2;
// Of a multiprocessor, so that enough is left as a cache where these are one memory.
constexpr int most_shared = 160 * 1024;

// Extremes of the magnitudes in halves of 32-bit words. `largest`: 2^15 + the largest. `least`, with
// sign: 2^15 + the smallest - 1, negative; of zeros 2^15 - 1, so that they are the smallest only
// among themselves.
struct extremes {
    std::uint32_t largest = 0x80008000, least = 0x7fff7fff;

    __device__ void add(std::uint32_t pair) {
        const std::uint32_t magnitudes = pair | 0x80008000u;
        largest = __vmaxu2(largest, magnitudes);
        least = __vmins2(least, magnitudes - 0x00010001u);
    }
    // In the upper half the largest magnitude, in the lower one 2^16 - least, or 0 if all are zero.
    __device__ std::uint32_t folded() const {
        const std::uint32_t below = least ^ 0x7fff7fffu;
        const std::uint32_t upper = __byte_perm(below, largest, 0x7632);
        const std::uint32_t lower = __byte_perm(below, largest, 0x5410);
        return __vmaxu2(upper, lower) & 0x7fffffffu;
    }
};

__device__ std::uint32_t twice(std::uint32_t half) { return half << 16 | half; }

// 2 * magnitude + sign of both halves.
__device__ std::uint32_t rotated(std::uint32_t pair) {
    return (pair << 1 & 0xfffefffeu) | (pair >> 15 & 0x00010001u);
}

// The first `near` counters of each table, at most 2^15, are in shared memory, followed by one that
// is not read, for all other elements. Behind them are the counts of blocks. They are added to
// those of the launch at the end.
__global__ void __launch_bounds__(threads)
    count_blocks(const __grid_constant__ word_launch l, std::uint32_t near) {
    extern __shared__ unsigned char room[];
    auto* const own = reinterpret_cast<std::uint32_t*>(room);
    const std::uint32_t tables = l.table_count - 1;
    const std::uint32_t stride = near + 1;
    std::uint32_t* const own_counted = own + tables * stride;
    for (unsigned i = threadIdx.x; i < tables * (stride + 1); i += threads) own[i] = 0;
    __syncthreads();

    const unsigned lane = threadIdx.x % lanes;
    const std::uint32_t group = l.size / lane_words;
    const std::uint32_t parts = l.blocks * group;
    // The warps of all blocks of threads take turns.
    std::uint32_t first = (threadIdx.x / lanes * gridDim.x + blockIdx.x) * lanes;
    for (; first < parts; first += gridDim.x * threads) {
        const std::uint32_t part = first + lane;
        std::uint32_t x[pairs] = {};
        if (part < parts) {
            const auto* const from =
                reinterpret_cast<const uint4*>(l.words) + part * std::size_t{2};
#pragma unroll
            for (unsigned i = 0; i < pairs; i += 4) {
                const uint4 four = __ldg(from + i / 4);
                x[i] = four.x;
                x[i + 1] = four.y;
                x[i + 2] = four.z;
                x[i + 3] = four.w;
            }
        }
        extremes e;
#pragma unroll
        for (unsigned i = 0; i < pairs; ++i) e.add(x[i]);
        std::uint32_t both = e.folded();
        for (unsigned distance = group / 2; distance != 0; distance /= 2) {
            both = __vmaxu2(both, __shfl_xor_sync(0xffffffffu, both, static_cast<int>(distance)));
        }
        const std::uint32_t number = __ldg(l.table_of + (both >> 16));
        const counted_table t = l.tables[number];
        const std::uint32_t least = 0x10000u - (both & 0xffffu);
        const bool counts = least - t.floor < t.span;
        const std::uint32_t left = __ballot_sync(0xffffffffu, counts ? 0 : 1);
        if (lane == 0) l.left[first / lanes] = left;
        if (!counts) continue;
        if ((part & (group - 1)) == 0) atomicAdd(own_counted + number - 1, 1u);
        std::uint32_t* const to = own + (number - 1) * stride;
        const std::uint32_t top = 2u * t.last + 1u;
        // By element: bits 8 to 15 for the lower ones of the pairs, 24 to 31 for the upper ones.
        std::uint32_t far = 0;
#pragma unroll
        for (const std::uint32_t pair : x) {
            const std::uint32_t at = __vminu2(twice(top) - rotated(pair), twice(near));
            atomicAdd(to + (at & 0xffffu), 1u);
            atomicAdd(to + (at >> 16), 1u);
            far = far >> 1 | (at + twice(0x8000u - near) & 0x80008000u);
        }
        for (; far != 0; far &= far - 1) {
            const std::uint32_t bit = __ffs(static_cast<int>(far)) - 1;
            const std::size_t element = 2 * (bit % pairs) + bit / 16;
            const std::uint32_t word = l.words[part * std::size_t{lane_words} + element];
            const std::uint32_t at = top - (word << 1 & 0xffffu | word >> 15);
            if (at + 1 >= top) continue;  // a zero
            atomicAdd(l.counters + std::size_t{number - 1} * l.width + at, 1u);
        }
    }

    __syncthreads();
    for (std::uint32_t t = 0; t < tables; ++t) {
        for (std::uint32_t i = threadIdx.x; i < near; i += threads) {
            const std::uint32_t n = own[t * stride + i];
            if (n != 0) atomicAdd(l.counters + std::size_t{t} * l.width + i, n);
        }
    }
    for (std::uint32_t t = threadIdx.x; t < tables; t += threads) {
        if (own_counted[t] != 0) atomicAdd(l.counted + t, own_counted[t]);
    }
}

__global__ void __launch_bounds__(threads) clear_words(std::uint32_t* words, std::uint32_t count) {
    const std::uint32_t first = blockIdx.x * threads + threadIdx.x;
    for (std::uint32_t i = first; i < count; i += gridDim.x * threads) words[i] = 0;
}

cudaError_t count_processors(int& count) {
    return cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
}

}  // namespace

int enqueue(const word_launch& l, void* stream) {
    int processors = 0, shared = 0;
    cudaError_t code = count_processors(processors);
    if (code != cudaSuccess) return code;
    code = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    if (code != cudaSuccess) return code;
    shared = std::min(shared, most_shared);
    code = cudaFuncSetAttribute(count_blocks, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (code != cudaSuccess) return code;
    const std::uint32_t tables = l.table_count - 1;
    const std::uint32_t room = static_cast<std::uint32_t>(shared) / sizeof(std::uint32_t);
    const std::uint32_t near = std::min(room / tables - 2, l.width);
    const std::uint32_t warps = (l.blocks * (l.size / lane_words) + lanes - 1) / lanes;
    // A block clears and adds up as many counters as it has room for, whatever it counts.
    const std::uint32_t full = (warps + least_warps - 1) / least_warps;
    const auto blocks = std::min(static_cast<unsigned>(processors), full);
    count_blocks<<<blocks, threads, tables*(near + 2) * sizeof(std::uint32_t),
                   static_cast<cudaStream_t>(stream)>>>(l, near);
    return cudaGetLastError();
}

int enqueue_clear(std::uint32_t* words, std::uint32_t count, void* stream) {
    int processors = 0;
    const cudaError_t code = count_processors(processors);
    if (code != cudaSuccess) return code;
    clear_words<<<static_cast<unsigned>(processors), threads, 0,
                  static_cast<cudaStream_t>(stream)>>>(words, count);
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
