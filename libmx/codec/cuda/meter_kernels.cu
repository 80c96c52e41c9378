// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/meter_kernels.hpp"

#include <cuda_runtime.h>

#include <type_traits>

namespace mx::codec::cuda {
namespace {

constexpr unsigned threads_per_block = 256;
// Concurrent loads of a thread.
constexpr int at_once = 8;

template <int n>
using count_of = std::integral_constant<int, n>;

// Calls body(first, step, count) such that all threads together process `words` with neighbouring
// threads on neighbouring words: `count` words, `step` apart.
template <typename Body>
__device__ void share(std::uint64_t words, Body body) {
    const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
    std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    for (; at + (at_once - 1) * step < words; at += at_once * step) {
        body(at, step, count_of<at_once>{});
    }
    for (; at < words; at += step) body(at, step, count_of<1>{});
}

__global__ void __launch_bounds__(threads_per_block)
    read_words(const uint4* __restrict__ from, std::uint64_t words, std::uint32_t* sum) {
    std::uint32_t own = 0;
    share(words, [&](std::uint64_t at, std::uint64_t step, auto count) {
        constexpr int n = decltype(count)::value;
        uint4 x[n];
#pragma unroll
        for (int i = 0; i < n; ++i) x[i] = from[at + i * step];
#pragma unroll
        for (int i = 0; i < n; ++i) own += x[i].x + x[i].y + x[i].z + x[i].w;
    });
    for (int distance = 16; distance != 0; distance /= 2) {
        own += __shfl_xor_sync(0xffffffffu, own, distance);
    }
    if (threadIdx.x % 32 == 0) atomicAdd(sum, own);
}

__global__ void __launch_bounds__(threads_per_block)
    copy_words(uint4* __restrict__ to, const uint4* __restrict__ from, std::uint64_t words) {
    share(words, [&](std::uint64_t at, std::uint64_t step, auto count) {
        constexpr int n = decltype(count)::value;
        uint4 x[n];
#pragma unroll
        for (int i = 0; i < n; ++i) x[i] = from[at + i * step];
#pragma unroll
        for (int i = 0; i < n; ++i) to[at + i * step] = x[i];
    });
}

// Sets `blocks` to the number that the first device can run at a time.
template <typename Kernel>
cudaError_t fill_device(Kernel kernel, unsigned& blocks) {
    int processors = 0, each = 0;
    cudaError_t code = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    if (code != cudaSuccess) return code;
    code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, threads_per_block, 0);
    blocks = static_cast<unsigned>(processors) * static_cast<unsigned>(each);
    return code;
}

}  // namespace

int enqueue_read(const std::byte* from, std::uint64_t bytes, std::uint32_t* sum, void* stream) {
    unsigned blocks = 0;
    if (const cudaError_t code = fill_device(read_words, blocks); code != cudaSuccess) return code;
    read_words<<<blocks, threads_per_block, 0, static_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const uint4*>(from), bytes / sizeof(uint4), sum);
    return cudaGetLastError();
}

int enqueue_copy(std::byte* to, const std::byte* from, std::uint64_t bytes, void* stream) {
    unsigned blocks = 0;
    if (const cudaError_t code = fill_device(copy_words, blocks); code != cudaSuccess) return code;
    copy_words<<<blocks, threads_per_block, 0, static_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from), bytes / sizeof(uint4));
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
