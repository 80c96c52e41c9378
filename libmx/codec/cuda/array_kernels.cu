// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "libmx/codec/cuda/array_work.hpp"

namespace mx::codec::cuda {
namespace {

constexpr unsigned threads = 256;

template <typename Work>
__global__ void __launch_bounds__(threads) work_on(const __grid_constant__ Work w) {
    const std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x;
    if (i < w.count()) w(i);
}

// In shared memory: every thread looks up entries of its own in the tables, and pointers lead there.
__global__ void __launch_bounds__(threads) decode(const __grid_constant__ decoded_blocks w) {
    __shared__ decoded_blocks own;
    constexpr auto words = static_cast<unsigned>(sizeof(decoded_blocks) / sizeof(std::uint32_t));
    static_assert(sizeof(decoded_blocks) % sizeof(std::uint32_t) == 0);
    const auto* from = reinterpret_cast<const std::uint32_t*>(&w);
    auto* to = reinterpret_cast<std::uint32_t*>(&own);
    for (unsigned i = threadIdx.x; i < words; i += threads) to[i] = from[i];
    __syncthreads();
    if (threadIdx.x == 0) own.settle();
    __syncthreads();
    const std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x;
    if (i < own.count()) own(i);
}

unsigned blocks_for(std::uint64_t count) {
    return static_cast<unsigned>((count + threads - 1) / threads);
}

struct starter {
    cudaStream_t on;

    template <typename Work>
    int operator()(const Work& w) const {
        const unsigned blocks = blocks_for(w.count());
        if (blocks == 0) return cudaSuccess;
        work_on<<<blocks, threads, 0, on>>>(w);
        return cudaGetLastError();
    }
    int operator()(const decoded_blocks& w) const {
        const unsigned blocks = blocks_for(w.count());
        if (blocks == 0) return cudaSuccess;
        decode<<<blocks, threads, 0, on>>>(w);
        return cudaGetLastError();
    }
    int operator()(const rotated_groups& w) const { return enqueue_rotation(w, on); }
};

}  // namespace

int enqueue(const array_work& what, void* stream) {
    return std::visit(starter{static_cast<cudaStream_t>(stream)}, what);
}

}  // namespace mx::codec::cuda
