// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "libmx/codec/cuda/matrix_values.hpp"

namespace mx::codec::cuda {
namespace {

constexpr unsigned threads = 256;

__global__ void __launch_bounds__(threads) place_values(const __grid_constant__ matrix_values m) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * threads + threadIdx.x;
    const std::uint64_t row = at / m.cols;
    if (row < m.rows) place_value(m, row, at - row * m.cols);
}

}  // namespace

int enqueue(const matrix_values& m, void* stream) {
    if (m.rows == 0 || m.cols == 0) return cudaSuccess;
    const auto blocks = static_cast<unsigned>((m.rows * m.cols + threads - 1) / threads);
    place_values<<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(m);
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
