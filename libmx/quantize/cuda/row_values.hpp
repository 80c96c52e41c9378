// SPDX-License-Identifier: Apache-2.0
// The up to 32 values of a block as one lane holds them, zeros behind the end: bf16 as it is
// stored, two to a word, or float32.
#pragma once

#include <cstdint>
#include <cstring>

#include "libmx/quantize/cuda/segment_body.hpp"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#endif

// Values lie in registers only where their places are constants.
#if defined(__CUDA_ARCH__)
#define MX_UNROLL _Pragma("unroll")
#else
#define MX_UNROLL
#endif

namespace mx::quantize::cuda {

/// Magnitudes, float32 bits.
struct magnitude_range {
    std::uint32_t most, least;
};

namespace detail {

/// Of the halves of three words the larger, and the smaller, ones; of a Hopper an instruction.
MX_HD inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(__CUDA_ARCH__)
    return __vimax3_u16x2(a, b, c);
#else
    const std::uint32_t low = std::max({a & 0xffffu, b & 0xffffu, c & 0xffffu});
    return low | std::max({a >> 16, b >> 16, c >> 16}) << 16;
#endif
}
MX_HD inline std::uint32_t smaller_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(__CUDA_ARCH__)
    return __vimin3_u16x2(a, b, c);
#else
    const std::uint32_t low = std::min({a & 0xffffu, b & 0xffffu, c & 0xffffu});
    return low | std::min({a >> 16, b >> 16, c >> 16}) << 16;
#endif
}

MX_HD inline std::uint32_t number_of_bits(std::uint32_t u) {
#if defined(__CUDA_ARCH__)
    return static_cast<std::uint32_t>(__popc(u));
#else
    return static_cast<std::uint32_t>(__builtin_popcount(u));
#endif
}

#if defined(__CUDACC__)
__device__ inline __nv_bfloat162 as_pair(std::uint32_t word) {
    __nv_bfloat162 pair;
    std::memcpy(&pair, &word, sizeof pair);
    return pair;
}
#endif

struct sixteen_bytes {
    std::uint32_t word[4];
};

/// Sixteen bytes at an address of which they are the unit.
MX_HD inline sixteen_bytes load_sixteen(const std::byte* from) {
#if defined(__CUDA_ARCH__)
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    return {{v.x, v.y, v.z, v.w}};
#else
    sixteen_bytes v;
    std::memcpy(&v, from, sizeof v);
    return v;
#endif
}

}  // namespace detail

class bf16_block {
  public:
    /// Products of two values, or of errors, of 8 bits are exact in float32.
    static constexpr bool exact_products = true;
    /// Bits of a value below its leading one.
    static constexpr int fraction_bits = 7;

    MX_HD void load(const device_values& values, std::uint64_t at, std::uint32_t size) {
        if (size == 32 && at % 8 == 0) {
            MX_UNROLL
            for (int i = 0; i < 16; i += 4) {
                const detail::sixteen_bytes v = detail::load_sixteen(
                    values.data + (at + static_cast<std::uint64_t>(2 * i)) * 2);
                for (int k = 0; k < 4; ++k) word_[i + k] = v.word[k];
            }
            return;
        }
        MX_UNROLL
        for (std::uint32_t i = 0; i < 32; i += 2) {
            const std::uint32_t low = i < size ? half(values, at + i) : 0u;
            const std::uint32_t high = i + 1 < size ? half(values, at + i + 1) : 0u;
            word_[i / 2] = low | high << 16;
        }
    }

    /// Value `i`; a constant.
    MX_HD float operator[](int i) const {
        return base::float_from_bits(i % 2 == 0 ? word_[i / 2] << 16 : word_[i / 2] & 0xffff0000u);
    }

    MX_HD magnitude_range range() const {
        std::uint32_t most = 0, least = 0x7fff7fffu;
        MX_UNROLL
        for (int i = 0; i < 16; i += 2) {
            const std::uint32_t a = word_[i] & 0x7fff7fffu;
            const std::uint32_t b = word_[i + 1] & 0x7fff7fffu;
            most = detail::larger_halves(most, a, b);
            least = detail::smaller_halves(least, a, b);
        }
        return {std::max(most << 16, most & 0xffff0000u),
                std::min(least << 16, least & 0xffff0000u)};
    }

    /// The smallest magnitude that is not zero, 0 if there is none.
    MX_HD std::uint32_t least_nonzero() const {
        std::uint32_t least = 0xffffu;
        MX_UNROLL
        for (int i = 0; i < 16; ++i) {
            // Zeros wrap to the top.
            least = std::min(least, ((word_[i] & 0x7fffu) - 1u) & 0xffffu);
            least = std::min(least, ((word_[i] >> 16 & 0x7fffu) - 1u) & 0xffffu);
        }
        return ((least + 1u) & 0xffffu) << 16;
    }

    /// How many magnitudes reach `from`, float32 bits, more than 0 and at most 0x7f800001.
    MX_HD std::uint32_t reaching(std::uint32_t from) const {
        const std::uint32_t half = (from + 0xffffu) >> 16;
        const std::uint32_t both = half | half << 16;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        // Two comparisons and two additions of ones at a time; where `from` is a NaN none is true.
        const __nv_bfloat162 bound = detail::as_pair(both);
        __nv_bfloat162 ones = detail::as_pair(0);
        MX_UNROLL
        for (int i = 0; i < 16; ++i) {
            ones = __hadd2(ones, __hge2(__habs2(detail::as_pair(word_[i])), bound));
        }
        return static_cast<std::uint32_t>(__low2float(ones) + __high2float(ones));
#else
        std::uint32_t reached = 0;
        MX_UNROLL
        for (int i = 0; i < 16; ++i) {
            // Neither half borrows, and its top bit stays where the magnitude is not smaller.
            const std::uint32_t d = (word_[i] | 0x80008000u) - both;
            reached = reached >> 1 | (d & 0x80008000u);
        }
        return detail::number_of_bits(reached);
#endif
    }

  private:
    static MX_HD std::uint32_t half(const device_values& values, std::uint64_t at) {
        std::uint16_t h;
        std::memcpy(&h, __builtin_assume_aligned(values.data + at * sizeof h, sizeof h), sizeof h);
        return h;
    }
    std::uint32_t word_[16];
};

class float_block {
  public:
    static constexpr bool exact_products = false;
    static constexpr int fraction_bits = 23;

    MX_HD void load(const device_values& values, std::uint64_t at, std::uint32_t size) {
        if (values.type == tensor::dtype::f32 && size == 32 && at % 4 == 0) {
            MX_UNROLL
            for (int i = 0; i < 32; i += 4) {
                const detail::sixteen_bytes v =
                    detail::load_sixteen(values.data + (at + static_cast<std::uint64_t>(i)) * 4);
                for (int k = 0; k < 4; ++k) value_[i + k] = base::float_from_bits(v.word[k]);
            }
            return;
        }
        MX_UNROLL
        for (std::uint32_t i = 0; i < 32; ++i) {
            value_[i] = i < size ? detail::load_value(values, at + i) : 0.0f;
        }
    }

    MX_HD float operator[](int i) const { return value_[i]; }

    MX_HD magnitude_range range() const {
        magnitude_range r{0, base::f32_magnitude_mask};
        MX_UNROLL
        for (int i = 0; i < 32; ++i) {
            r.most = std::max(r.most, magnitude(i));
            r.least = std::min(r.least, magnitude(i));
        }
        return r;
    }
    MX_HD std::uint32_t least_nonzero() const {
        std::uint32_t least = ~0u;
        MX_UNROLL
        for (int i = 0; i < 32; ++i) least = std::min(least, magnitude(i) - 1u);
        return least + 1u;
    }
    MX_HD std::uint32_t reaching(std::uint32_t from) const {
        std::uint32_t count = 0;
        MX_UNROLL
        for (int i = 0; i < 32; ++i) count += magnitude(i) >= from ? 1u : 0u;
        return count;
    }

  private:
    MX_HD std::uint32_t magnitude(int i) const {
        return base::bits_of(value_[i]) & base::f32_magnitude_mask;
    }
    float value_[32];
};

}  // namespace mx::quantize::cuda
