// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "libmx/codec/cuda/code_values.hpp"

namespace mx::codec::cuda {
namespace {

constexpr unsigned threads = 256;

__global__ void __launch_bounds__(threads) widen_all(device_codes c) {
    const std::uint64_t group = std::uint64_t{blockIdx.x} * threads + threadIdx.x;
    if (group < c.groups()) widen_codes(c, group);
}

}  // namespace

int enqueue_codes(const launch& l, void* stream) {
    if (l.codes.count == 0) return cudaSuccess;
    const auto blocks = static_cast<unsigned>((l.codes.groups() + threads - 1) / threads);
    widen_all<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(l.codes);
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
