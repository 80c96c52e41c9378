// SPDX-License-Identifier: Apache-2.0
// The language of CUDA for a C++ compiler: included first in sources that translate.cmake made from
// .cu files. The threads of a block are fibres (card.cpp), which wait for each other at every
// barrier and exchange; behaviour that CUDA leaves undefined is an error here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#include "tests/parity/kernels_on_host/fibres.hpp"

// Code of the device and code of the host of one name are different functions, which a linker must
// not take for one another.
#define mx mx_card

#define __CUDACC__
#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (::card::here().thread)
#define blockIdx (::card::here().block)
#define blockDim (::card::here().block_size)
#define gridDim (::card::here().grid)

using dim3 = card::extent;
using cudaStream_t = card::stream*;

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
template <typename T>
T __ldg(const T* from) {
    return *from;
}

// The runtime.
enum cudaError_t : int { cudaSuccess = 0 };
inline cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(card::last_error()); }
struct cudaFuncAttributes {};
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel*) {
    return cudaSuccess;
}
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount, cudaDevAttrMaxSharedMemoryPerBlockOptin };
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
    *value = which == cudaDevAttrMultiProcessorCount ? 3 : static_cast<int>(card::most_shared);
    return cudaSuccess;
}
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
    return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel*, int, std::size_t) {
    *blocks = 2;
    return cudaSuccess;
}

// Barriers and exchanges.
inline void __syncthreads() { card::sync_block(); }
inline void __syncwarp() { card::exchange("__syncwarp", ~0u, 0); }
inline std::uint32_t __shfl_xor_sync(std::uint32_t lanes, std::uint32_t own, int mask) {
    const std::uint32_t* const all = card::exchange("__shfl_xor_sync", lanes, own);
    return all[(card::here().lane ^ static_cast<unsigned>(mask)) % card::warp_size];
}
inline int __any_sync(std::uint32_t lanes, int own) {
    const std::uint32_t* const all = card::exchange("__any_sync", lanes, own != 0 ? 1u : 0u);
    return std::any_of(all, all + card::warp_size, [](std::uint32_t one) { return one != 0; });
}
inline std::uint32_t __ballot_sync(std::uint32_t lanes, int own) {
    const std::uint32_t* const all = card::exchange("__ballot_sync", lanes, own != 0 ? 1u : 0u);
    std::uint32_t ballot = 0;
    for (unsigned i = 0; i < card::warp_size; ++i) ballot |= all[i] << i;
    return ballot;
}
inline int __reduce_max_sync(std::uint32_t lanes, int own) {
    const auto word = static_cast<std::uint32_t>(own);
    const std::uint32_t* const all = card::exchange("__reduce_max_sync", lanes, word);
    int most = own;
    for (std::uint32_t lane = 0; lane < card::warp_size; ++lane) {
        most = std::max(most, static_cast<int>(all[lane]));
    }
    return most;
}
// Fibres of a stream switch only where they wait.
template <typename T>
T atomicAdd(T* to, T value) {
    const T before = *to;
    *to += value;
    return before;
}
inline std::uint32_t atomicMax(std::uint32_t* to, std::uint32_t value) {
    const std::uint32_t before = *to;
    *to = std::max(before, value);
    return before;
}
inline std::uint32_t atomicMin(std::uint32_t* to, std::uint32_t value) {
    const std::uint32_t before = *to;
    *to = std::min(before, value);
    return before;
}

namespace card {

/// The float next to `exact` toward zero, or in a direction.
inline float rounded(double exact, float toward) {
    const auto nearest = static_cast<float>(exact);
    if (nearest == exact) return nearest;
    const float other = std::nextafter(nearest, nearest < exact ? HUGE_VALF : -HUGE_VALF);
    return toward == 0 ? (std::fabs(nearest) < std::fabs(exact) ? nearest : other)
                       : ((nearest < exact) == (toward < 0) ? nearest : other);
}

/// Two operations on the halves of words, as numbers without sign.
template <typename Operation>
std::uint32_t by_halves(std::uint32_t a, std::uint32_t b, Operation operation) {
    const auto half = [&](int at) {
        return static_cast<std::uint32_t>(operation(a >> at & 0xffffu, b >> at & 0xffffu)) &
               0xffffu;
    };
    return half(0) | half(16) << 16;
}
inline std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return std::max(a, b); }
inline std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return std::min(a, b); }

}  // namespace card

// Numbers.
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
// A GPU has one NaN as result.
inline float __fmaf_rn(float a, float b, float c) {
    const float sum = std::fma(a, b, c);
    const std::uint32_t nan = 0x7fffffff;
    float to = 0;
    std::memcpy(&to, &nan, sizeof to);
    return sum == sum ? sum : to;
}
inline float __fmul_rz(float a, float b) { return card::rounded(double{a} * b, 0); }
inline float __fmaf_rz(float a, float b, float c) { return card::rounded(double{a} * b + c, 0); }
inline float __fmaf_rd(float a, float b, float c) {
    return card::rounded(double{a} * b + c, -HUGE_VALF);
}
inline float __fmaf_ru(float a, float b, float c) {
    return card::rounded(double{a} * b + c, HUGE_VALF);
}
inline float __ll2float_rz(long long x) { return card::rounded(static_cast<double>(x), 0); }
inline float __int2float_rz(int x) { return card::rounded(x, 0); }
inline float __int2float_rd(int x) { return card::rounded(x, -HUGE_VALF); }
inline float __int2float_ru(int x) { return card::rounded(x, HUGE_VALF); }
template <typename Integer>
Integer integer_toward_zero(float x) {
    if (std::isnan(x)) return 0;
    const double least = std::numeric_limits<Integer>::min();
    if (x < least) return std::numeric_limits<Integer>::min();
    return x >= -least ? std::numeric_limits<Integer>::max() : static_cast<Integer>(x);
}
inline int __float2int_rz(float x) { return integer_toward_zero<int>(x); }
inline long long __float2ll_rz(float x) { return integer_toward_zero<long long>(x); }
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 32; i += 8) {
        c += static_cast<std::int8_t>(a >> i & 0xff) * static_cast<std::int8_t>(b >> i & 0xff);
    }
    return c;
}
inline unsigned __vmaxu2(unsigned a, unsigned b) { return card::by_halves(a, b, card::larger); }
inline unsigned __vminu2(unsigned a, unsigned b) { return card::by_halves(a, b, card::smaller); }
inline unsigned __vmins2(unsigned a, unsigned b) {
    return card::by_halves(a, b, [](std::uint32_t x, std::uint32_t y) {
        return std::min(static_cast<std::int16_t>(x), static_cast<std::int16_t>(y));
    });
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned from = selector >> 4 * i & 7u;
        out |= static_cast<unsigned>(bytes >> 8 * from & 0xffu) << 8 * i;
    }
    return out;
}
inline unsigned __vimax3_u16x2(unsigned a, unsigned b, unsigned c) {
    return card::by_halves(card::by_halves(a, b, card::larger), c, card::larger);
}
inline unsigned __vimin3_u16x2(unsigned a, unsigned b, unsigned c) {
    return card::by_halves(card::by_halves(a, b, card::smaller), c, card::smaller);
}
inline unsigned __viaddmax_s16x2(unsigned a, unsigned b, unsigned c) {
    const auto larger = [](std::uint32_t x, std::uint32_t y) {
        return std::max(static_cast<std::int16_t>(x), static_cast<std::int16_t>(y));
    };
    const auto sum = [](std::uint32_t x, std::uint32_t y) { return x + y; };
    return card::by_halves(card::by_halves(a, b, sum), c, larger);
}
inline unsigned __viaddmax_u16x2(unsigned a, unsigned b, unsigned c) {
    const auto sum = [](std::uint32_t x, std::uint32_t y) { return x + y; };
    return card::by_halves(card::by_halves(a, b, sum), c, card::larger);
}
