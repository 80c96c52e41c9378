// SPDX-License-Identifier: Apache-2.0
// Jobs on a device: a block of threads executes the functions of simd/elementwise.inc together.
#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/lab/cuda/kernels.hpp"
#include "libmx/lab/jobs.hpp"

namespace mx::lab::cuda {
namespace {

using namespace simd;

using jobs::most_threads;

// The sums and maxima of elementwise.inc. All threads of the block call them, after what other
// threads wrote and before they write again. All threads compute terms, so that many reads are on
// their way, and a few add them in the order of the CPU. Terms are shared as float64, which holds
// each exactly.

constexpr unsigned terms_at_once = 1024;
constexpr unsigned lanes_of_sum = 16;  // which divide terms_at_once
constexpr unsigned warp_size = 32;

// One for all of them.
__device__ inline double* shared_terms() {
    __shared__ double terms[terms_at_once];
    return terms;
}

// Calls add(terms, count) for consecutive terms.
template <typename Term, typename Add>
__device__ __forceinline__ void for_terms(std::size_t count, const Term& term, Add&& add) {
    double* const terms = shared_terms();
    for (std::size_t first = 0; first < count; first += terms_at_once) {
        const std::size_t left = count - first;
        const auto some = static_cast<unsigned>(left < terms_at_once ? left : terms_at_once);
        __syncthreads();
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < some; i += blockDim.x) {
            terms[i] = static_cast<double>(term(first + i));
        }
        __syncthreads();
        add(terms, some);
    }
}

template <typename Term>
__device__ double sum_by_lanes(std::size_t count, const Term& term) {
    __shared__ double lane[lanes_of_sum];
    double own = 0;
    for_terms(count, term, [&](const double* terms, unsigned some) {
        if (threadIdx.x >= lanes_of_sum) return;
        for (unsigned i = threadIdx.x; i < some; i += lanes_of_sum) own += terms[i];
    });
    __syncthreads();
    if (threadIdx.x < lanes_of_sum) lane[threadIdx.x] = own;
    __syncthreads();
    double sum[lanes_of_sum];
    for (unsigned i = 0; i < lanes_of_sum; ++i) sum[i] = lane[i];
    for (unsigned half = lanes_of_sum / 2; half > 0; half /= 2) {
        for (unsigned i = 0; i < half; ++i) sum[i] += sum[i + half];
    }
    return sum[0];
}

template <typename T, typename Term>
__device__ T sum_in_order(std::size_t count, const Term& term) {
    __shared__ double total;
    T sum = 0;
    for_terms(count, term, [&](const double* terms, unsigned some) {
        if (threadIdx.x >= warp_size) return;
        for (unsigned i = 0; i < some; ++i) sum += static_cast<T>(terms[i]);
    });
    __syncthreads();
    if (threadIdx.x == 0) total = static_cast<double>(sum);
    __syncthreads();
    return static_cast<T>(total);
}

// Sums of up to warp_size columns from row 0 on; term(row, column).
template <typename T, typename Term, typename Store>
__device__ void sum_columns_in_order(std::size_t rows, unsigned columns, const Term& term,
                                     Store&& store) {
    double* const terms = shared_terms();
    constexpr unsigned rows_at_once = terms_at_once / warp_size;
    const unsigned column = threadIdx.x % warp_size;
    T sum = 0;
    for (std::size_t first = 0; first < rows; first += rows_at_once) {
        __syncthreads();
#pragma unroll 4
        for (unsigned r = threadIdx.x / warp_size; r < rows_at_once; r += blockDim.x / warp_size) {
            if (first + r < rows && column < columns) {
                terms[r * warp_size + column] = static_cast<double>(term(first + r, column));
            }
        }
        __syncthreads();
        if (threadIdx.x >= columns) continue;
        for (unsigned r = 0; r < rows_at_once && first + r < rows; ++r) {
            sum += static_cast<T>(terms[r * warp_size + column]);
        }
    }
    if (threadIdx.x < columns) store(column, sum);
}

template <typename T, typename Term>
__device__ T largest_of(T most, std::size_t count, const Term& term) {
    double* const own = shared_terms();
    static_assert(most_threads <= terms_at_once);
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) {
        const T one = term(i);
        most = one > most ? one : most;
    }
    __syncthreads();
    own[threadIdx.x] = static_cast<double>(most);
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        const double one = own[threadIdx.x + half];
        own[threadIdx.x] = one > own[threadIdx.x] ? one : own[threadIdx.x];
    }
    __syncthreads();
    return static_cast<T>(own[0]);
}

#define MX_ON_DEVICE
#define MX_INLINE __device__ __forceinline__
#define MX_KERNEL __device__ inline
#define MX_EACH(i, count) for (std::size_t i = threadIdx.x; i < (count); i += blockDim.x)
#define MX_LANE_SUM(result, count, term) \
    (result) = sum_by_lanes(count, [&](std::size_t i) -> double { return (term); })
#define MX_ORDERED_SUM(result, count, term)                       \
    (result) = sum_in_order<std::remove_cvref_t<decltype(result)>>( \
        count, [&](std::size_t i) { return (term); })
#define MX_LARGEST(result, count, term) \
    (result) = largest_of(result, count, [&](std::size_t i) { return (term); });

namespace block {
#include "libmx/lab/simd/elementwise.inc"
}  // namespace block

// What a job is called with in place of simd::kernels.
struct block_kernels {
#define MX_FUNCTION(name)                             \
    template <typename... Arguments>                  \
    __device__ auto name(Arguments... from) const {   \
        return block::name(from...);                  \
    }
    MX_FUNCTION(round)
    MX_FUNCTION(activate)
    MX_FUNCTION(activate_back)
    MX_FUNCTION(stepwise_gelu)
    MX_FUNCTION(add)
    MX_FUNCTION(add_bias)
    MX_FUNCTION(norm)
    MX_FUNCTION(norm_back)
    MX_FUNCTION(column_sums)
    MX_FUNCTION(squared_error)
    MX_FUNCTION(divergence)
    MX_FUNCTION(cross_entropy)
    MX_FUNCTION(softmax)
    MX_FUNCTION(softmax_back)
    MX_FUNCTION(rope)
    MX_FUNCTION(rope_back)
    MX_FUNCTION(adam)
    MX_FUNCTION(sgd)
    MX_FUNCTION(dot)
    MX_FUNCTION(fill)
    MX_FUNCTION(scale)
    MX_FUNCTION(add_scaled)
    MX_FUNCTION(transpose)
    MX_FUNCTION(normal)
#undef MX_FUNCTION
};

template <typename Job>
__global__ void __launch_bounds__(most_threads)
    run_job(const __grid_constant__ Job j, std::uint64_t count) {
    const std::uint64_t begin = std::uint64_t{blockIdx.x} * Job::of_block;
    const std::uint64_t left = count - begin;
    j(block_kernels{}, begin, begin + (left < Job::of_block ? left : Job::of_block));
}

template <typename Job>
void start(const Job& j, std::uint64_t count, cudaStream_t stream) {
    const auto blocks = static_cast<unsigned>((count + Job::of_block - 1) / Job::of_block);
    run_job<Job><<<blocks, j.threads(), 0, stream>>>(j, count);
}

}  // namespace

int enqueue(const job& what, std::uint64_t count, void* stream) {
    if (count == 0) return cudaSuccess;
    std::visit([&](const auto& j) { start(j, count, static_cast<cudaStream_t>(stream)); }, what);
    return cudaGetLastError();
}

}  // namespace mx::lab::cuda
