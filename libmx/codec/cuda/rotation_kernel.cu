// SPDX-License-Identifier: Apache-2.0
// Hadamard rotations (transform/rotation.hpp): a block of threads for each group.
#include <cuda_runtime.h>

#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/codec/cuda/array_work.hpp"

namespace mx::codec::cuda {
namespace {

constexpr unsigned threads = 128;
constexpr unsigned most = rotated_groups::most_size;

__device__ inline float one_nan(float x) { return x == x ? x : base::quiet_nan(); }

// Sums of `base` neighbours, then butterflies, in T; the result is in `x`.
template <typename T>
__device__ void sum_group(const rotated_groups& l, T* x, T* room) {
    if (l.base > 1) {
        for (unsigned i = threadIdx.x; i < l.size; i += threads) {
            const unsigned row = i % l.base, at = i - row;
            T sum = 0;
            for (unsigned j = 0; j < l.base; ++j) {
                const T term = (l.minus_entry[row] >> j & 1u) != 0 ? -x[at + j] : x[at + j];
                sum = j == 0 ? term : sum + term;
            }
            room[i] = sum;
        }
        __syncthreads();
        for (unsigned i = threadIdx.x; i < l.size; i += threads) x[i] = room[i];
        __syncthreads();
    }
    for (unsigned d = l.base; d < l.size; d *= 2) {
        for (unsigned k = threadIdx.x; k < l.size / 2; k += threads) {
            const unsigned i = k / d * 2 * d + k % d;
            const T low = x[i], high = x[i + d];
            x[i] = low + high;
            x[i + d] = low - high;
        }
        __syncthreads();
    }
}

__device__ inline float signed_by(const rotated_groups& l, unsigned i, float x) {
    return (l.minus[i / 32] >> i % 32 & 1u) != 0 ? -1.0f * x : x;
}

__device__ inline float* group_of(const rotated_groups& l) {
    const std::uint64_t run = blockIdx.x % l.runs, group = blockIdx.x / l.runs;
    return l.x + run * l.run_step + group * l.size * l.step;
}

__global__ void __launch_bounds__(threads) rotate_there(const __grid_constant__ rotated_groups l) {
    __shared__ float x[most];
    __shared__ float room[most];
    float* const group = group_of(l);
    for (unsigned i = threadIdx.x; i < l.size; i += threads) {
        x[i] = signed_by(l, i, group[i * l.step]);
    }
    __syncthreads();
    sum_group(l, x, room);
    for (unsigned i = threadIdx.x; i < l.size; i += threads) {
        group[i * l.step] = one_nan(x[i] * l.factor);
    }
}

__global__ void __launch_bounds__(threads) rotate_back(const __grid_constant__ rotated_groups l) {
    __shared__ double x[most];
    __shared__ double room[most];
    float* const group = group_of(l);
    for (unsigned i = threadIdx.x; i < l.size; i += threads) {
        x[i] = static_cast<double>(group[i * l.step]);
    }
    __syncthreads();
    sum_group(l, x, room);
    const double divisor = static_cast<double>(l.size) * static_cast<double>(l.factor);
    for (unsigned i = threadIdx.x; i < l.size; i += threads) {
        // A zero becomes +0.
        const float y = signed_by(l, i, static_cast<float>(x[i] / divisor)) + 0.0f;
        group[i * l.step] = one_nan(y);
    }
}

}  // namespace

int enqueue_rotation(const rotated_groups& l, void* stream) {
    const auto on = static_cast<cudaStream_t>(stream);
    const auto blocks = static_cast<unsigned>(l.runs * l.groups);
    if (blocks == 0) return cudaSuccess;
    if (l.back) {
        rotate_back<<<blocks, threads, 0, on>>>(l);
    } else {
        rotate_there<<<blocks, threads, 0, on>>>(l);
    }
    return cudaGetLastError();
}

}  // namespace mx::codec::cuda
