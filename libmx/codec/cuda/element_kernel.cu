// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/element_body.hpp"

#include <cuda_runtime.h>

namespace mx::codec::cuda {
namespace {

constexpr unsigned threads = 256;
// Enough for any device; threads continue with further values.
constexpr unsigned most_blocks = 2048;

// The cast is in shared memory: all threads read its numbers at once, and each thread looks up its
// own entry in the table of values.
__global__ void __launch_bounds__(threads) cast_values(const __grid_constant__ element_launch l) {
    __shared__ element_work work;
    constexpr auto words = static_cast<unsigned>(sizeof(element_work) / sizeof(std::uint32_t));
    static_assert(sizeof(element_work) % sizeof(std::uint32_t) == 0);
    const auto* from = reinterpret_cast<const std::uint32_t*>(&l.work);
    auto* to = reinterpret_cast<std::uint32_t*>(&work);
    for (unsigned i = threadIdx.x; i < words; i += threads) to[i] = from[i];
    __syncthreads();
    if (threadIdx.x == 0) settle(work);
    __syncthreads();
    std::uint32_t without_code = l.count;
    for (std::uint32_t i = blockIdx.x * threads + threadIdx.x; i < l.count;
         i += gridDim.x * threads) {
        if (!cast_value(work, l, i) && i < without_code) without_code = i;
    }
    if (without_code < l.count) atomicMin(l.without_code, without_code);
}

}  // namespace

int enqueue(const element_launch& l, void* stream) {
    if (l.count == 0) return cudaSuccess;
    const unsigned wanted = (l.count - 1) / threads + 1;
    const unsigned blocks = wanted < most_blocks ? wanted : most_blocks;
    cast_values<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(l);
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
