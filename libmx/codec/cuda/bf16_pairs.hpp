// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two bf16 in a word, each result rounded to nearest even: instructions of a device,
// float32 on the host. A sum of float32 rounds twice there, which makes no difference while one of
// its terms has at least half the exponent range of a bf16 between its last place and the other's
// first, or the exact sum fits 24 bits; a NaN or a subnormal is not asked for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "libmx/base/bits.hpp"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#endif

namespace mx::codec::cuda {

/// The value in the lower half, and in the upper.
MX_HD inline float low_of(std::uint32_t pair) { return base::float_from_bits(pair << 16); }
MX_HD inline float high_of(std::uint32_t pair) { return base::float_from_bits(pair & 0xffff0000u); }

#if defined(__CUDA_ARCH__)

__device__ inline __nv_bfloat162 as_pair(std::uint32_t word) {
    __nv_bfloat162 pair;
    std::memcpy(&pair, &word, sizeof pair);
    return pair;
}
__device__ inline std::uint32_t as_word(__nv_bfloat162 pair) {
    std::uint32_t word;
    std::memcpy(&word, &pair, sizeof word);
    return word;
}

__device__ inline std::uint32_t pair_product(std::uint32_t a, std::uint32_t b) {
    return as_word(__hmul2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t pair_sum(std::uint32_t a, std::uint32_t b) {
    return as_word(__hadd2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t pair_difference(std::uint32_t a, std::uint32_t b) {
    return as_word(__hsub2(as_pair(a), as_pair(b)));
}
__device__ inline std::uint32_t pair_between(std::uint32_t a, std::uint32_t least,
                                             std::uint32_t most) {
    return as_word(__hmin2(__hmax2(as_pair(a), as_pair(least)), as_pair(most)));
}

// Of halves as numbers without sign; a Hopper has an instruction for each.
__device__ inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __vimax3_u16x2(a, b, c);
}
__device__ inline std::uint32_t smaller_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __vimin3_u16x2(a, b, c);
}
__device__ inline std::uint32_t larger_of_sum(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __viaddmax_u16x2(a, b, c);
}

#else

template <typename Operation>
MX_HD inline std::uint32_t by_halves(std::uint32_t a, std::uint32_t b, Operation operation) {
    const auto rounded = [](float x) {
        const std::uint32_t bits = base::bits_of(x);
        return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    };
    return rounded(operation(low_of(a), low_of(b))) | rounded(operation(high_of(a), high_of(b)))
                                                          << 16;
}

MX_HD inline std::uint32_t pair_product(std::uint32_t a, std::uint32_t b) {
    return by_halves(a, b, [](float x, float y) { return x * y; });
}
MX_HD inline std::uint32_t pair_sum(std::uint32_t a, std::uint32_t b) {
    return by_halves(a, b, [](float x, float y) { return x + y; });
}
MX_HD inline std::uint32_t pair_difference(std::uint32_t a, std::uint32_t b) {
    return by_halves(a, b, [](float x, float y) { return x - y; });
}
MX_HD inline std::uint32_t pair_between(std::uint32_t a, std::uint32_t least, std::uint32_t most) {
    const std::uint32_t up = by_halves(a, least, [](float x, float y) { return x < y ? y : x; });
    return by_halves(up, most, [](float x, float y) { return x > y ? y : x; });
}
MX_HD inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t low = std::max(std::max(a & 0xffffu, b & 0xffffu), c & 0xffffu);
    return low | std::max(std::max(a >> 16, b >> 16), c >> 16) << 16;
}
MX_HD inline std::uint32_t smaller_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t low = std::min(std::min(a & 0xffffu, b & 0xffffu), c & 0xffffu);
    return low | std::min(std::min(a >> 16, b >> 16), c >> 16) << 16;
}
MX_HD inline std::uint32_t larger_of_sum(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t low = std::max((a + b) & 0xffffu, c & 0xffffu);
    return low | std::max(((a >> 16) + (b >> 16)) & 0xffffu, c >> 16) << 16;
}

#endif

}  // namespace mx::codec::cuda
