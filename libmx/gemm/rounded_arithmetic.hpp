// SPDX-License-Identifier: Apache-2.0
// Floats on the way from a step's terms to an accumulator: arithmetic with directed roundings,
// powers of two of any exponent, and pairs of 16-bit exponents. A GPU has an instruction for most.
#pragma once

#include <cmath>
#include <cstdint>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/base/macros.hpp"
#include "libmx/gemm/terms.hpp"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

namespace mx::gemm {

MX_HD inline int larger(int a, int b) { return a > b ? a : b; }
MX_HD inline int smaller(int a, int b) { return a < b ? a : b; }

#if defined(__CUDA_ARCH__)

/// x rounded toward zero.
__device__ inline std::int32_t truncated(float x) { return __float2int_rz(x); }
__device__ inline std::int64_t truncated_long(float x) { return __float2ll_rz(x); }

/// a * b rounded toward zero, and a * b + c rounded once, in three directions.
__device__ inline float product_toward_zero(float a, float b) { return __fmul_rz(a, b); }
__device__ inline float sum_toward_zero(float a, float b, float c) { return __fmaf_rz(a, b, c); }
__device__ inline float sum_downward(float a, float b, float c) { return __fmaf_rd(a, b, c); }
__device__ inline float sum_upward(float a, float b, float c) { return __fmaf_ru(a, b, c); }
__device__ inline float float_toward_zero(std::int64_t x) { return __ll2float_rz(x); }
__device__ inline float float_toward_zero(std::int32_t x) { return __int2float_rz(x); }
__device__ inline float float_downward(std::int32_t x) { return __int2float_rd(x); }
__device__ inline float float_upward(std::int32_t x) { return __int2float_ru(x); }

/// The larger of a + b and c, as pairs of signed 16-bit numbers; sums must not overflow.
__device__ inline std::uint32_t larger_of_sums(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return __viaddmax_s16x2(a, b, c);
}

/// The value of f16 bits, and the f16 bits nearest to a value.
__device__ inline float float_of_half(std::uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
__device__ inline std::uint32_t half_of_float(float x) {
    return __half_as_ushort(__float2half_rn(x));
}

#else

// The results are exact as doubles. Values out of range do not matter.
inline std::int32_t truncated(float x) {
    return std::fabs(x) < 0x1p31F ? static_cast<std::int32_t>(x) : 0;
}
inline std::int64_t truncated_long(float x) {
    return std::fabs(x) < 0x1p63F ? static_cast<std::int64_t>(x) : 0;
}
inline float directed(double x, float direction) {
    const auto nearest = static_cast<float>(x);
    const bool beyond = direction == 0  ? std::fabs(nearest) > std::fabs(x)
                        : direction < 0 ? nearest > x
                                        : nearest < x;
    return beyond ? std::nextafter(nearest, direction) : nearest;
}
inline float product_toward_zero(float a, float b) { return directed(double{a} * b, 0); }
inline float sum_toward_zero(float a, float b, float c) { return directed(double{a} * b + c, 0); }
inline float sum_downward(float a, float b, float c) {
    return directed(double{a} * b + c, -HUGE_VALF);
}
inline float sum_upward(float a, float b, float c) {
    return directed(double{a} * b + c, HUGE_VALF);
}
inline float float_toward_zero(std::int64_t x) { return directed(static_cast<double>(x), 0); }
inline float float_toward_zero(std::int32_t x) { return directed(x, 0); }
inline float float_downward(std::int32_t x) { return directed(x, -HUGE_VALF); }
inline float float_upward(std::int32_t x) { return directed(x, HUGE_VALF); }

inline std::uint32_t larger_of_sums(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const auto half = [&](int at) {
        const auto of = [at](std::uint32_t x) { return int{static_cast<std::int16_t>(x >> at)}; };
        return static_cast<std::uint32_t>(larger(of(a) + of(b), of(c))) & 0xffffu;
    };
    return half(0) | half(16) << 16;
}

inline float float_of_half(std::uint32_t bits) {
    return base::float_from_half(static_cast<std::uint16_t>(bits));
}
inline std::uint32_t half_of_float(float x) { return f16_from_f32(base::bits_of(x)); }

#endif

/// The larger of the two signed numbers of a pair.
MX_HD inline int larger_half(std::uint32_t pair) {
    return larger(static_cast<std::int32_t>(pair << 16), static_cast<std::int32_t>(pair)) >> 16;
}

/// 2^n for -126 <= n <= 127. Any float for others; their products with zero are truncated() to 0.
MX_HD inline float power_of_two(int n) {
    return base::float_from_bits((static_cast<std::uint32_t>(n) + 127u) << 23);
}

/// 1 / x for a power of two x from 2^-126 to 2^126.
MX_HD inline float inverse_power_of_two(float x) {
    return base::float_from_bits(0x7f000000u - base::bits_of(x));
}

/// The exponent of a float plus 127; 0 for subnormals and zero, 255 for infinity and NaN.
MX_HD inline int exponent_field(float x) { return static_cast<int>(base::bits_of(x) << 1 >> 24); }

/// The alignment exponent of an accumulator, at least `least`; `floor` for zero.
MX_HD inline int alignment_of(float c, int least, int floor) {
    return c == 0 ? floor : larger(exponent_field(c) - 127, least);
}

/// c * 2^n for an accumulator c below 2^(128 - n) with n <= 252; exact from 1/2 on in magnitude,
/// and below 1 otherwise. truncated() is 0 for c = 0 with any n.
MX_HD inline float raised(float c, int n) {
    const int within = larger(n, -252);
    const int half = within >> 1;
    return c * power_of_two(half) * power_of_two(within - half);
}

/// x * 2^n for an x of zero or from 2^64 to 2^126, rounded toward zero below the normal floats;
/// infinite from 2^128 on.
MX_HD inline float raised_toward_zero(float x, int n) {
    const float most = x * power_of_two(smaller(larger(n, -126), 127));
    return product_toward_zero(most, power_of_two(larger(smaller(n + 126, 0), -126)));
}

}  // namespace mx::gemm
