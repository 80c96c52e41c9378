// SPDX-License-Identifier: Apache-2.0
// Rows converted by instructions: completes a pair of instructions to an instruction_path.
#pragma once

#include <cuda_fp16.h>

#include "libmx/codec/cuda/row_kernels.cuh"
#include "libmx/codec/cuda/row_kernels.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/cuda/instructions.cuh"

namespace mx::codec::cuda {

/// The converter (see grid_converter). The host compiles it, but never runs it.
template <typename Narrow, typename Widen>
class instruction_converter {
  public:
    explicit MX_HD instruction_converter(const ocp_params&) {}
    MX_HD value_pair values(const row_grid& g, float first, float second) const {
#if defined(__CUDA_ARCH__)
        const float2 values = __half22float2(values_of(codes(g, first, second)));
        return {values.x * g.per_unit, values.y * g.per_unit};
#else
        return {rounded(g, first), rounded(g, second)};
#endif
    }
    MX_HD std::uint32_t codes(const row_grid& g, float first, float second) const {
#if defined(__CUDA_ARCH__)
        return Narrow::codes(base::bits_of(second * g.in_ones), base::bits_of(first * g.in_ones));
#else
        return code_of(g, first) | code_of(g, second) << 8;
#endif
    }

#if defined(__CUDACC__)
    static __device__ __half2 values_of(std::uint32_t codes) {
        const std::uint32_t both = Widen::values(codes & 0xffu, codes >> 8);
        __half2 values;
        std::memcpy(&values, &both, sizeof values);
        return values;
    }
#endif
};

// Whether the code and the value after conversion back equal those of the emulator.
__device__ inline bool same_conversion(const expected_conversion& expected, const word_range& words,
                                       std::uint32_t x, std::uint32_t code, float value) {
    if (words.finite && (x & base::f32_magnitude_mask) >= base::f32_infinity) return true;
    const std::uint32_t right = format::cast_code(expected.element, {}, x, true, 0);
    if (code != right) return false;
    const float q = expected.value[right];
    return q == value ? base::bits_of(q) == base::bits_of(value) : q != q && value != value;
}

// Every word occurs once in the lower half of a pair and, with inverted bits, once in the upper
// one.
template <typename Narrow, typename Widen>
__global__ void compare_conversions(const __grid_constant__ expected_conversion expected,
                                    word_range words, unsigned long long* different) {
    unsigned long long found = 0;
    const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words.count;
         i += threads) {
        const std::uint32_t x = words.first + static_cast<std::uint32_t>(i) * words.step;
        const std::uint32_t codes = Narrow::codes(~x, x);
        const float2 values =
            __half22float2(instruction_converter<Narrow, Widen>::values_of(codes));
        found += same_conversion(expected, words, x, codes & 0xffu, values.x) ? 0u : 1u;
        found += same_conversion(expected, words, ~x, codes >> 8, values.y) ? 0u : 1u;
    }
    if (found != 0) atomicAdd(different, found);
}

template <typename Narrow, typename Widen>
int has_conversions() {
    cudaFuncAttributes attributes{};
    const cudaError_t code = cudaFuncGetAttributes(&attributes, compare_conversions<Narrow, Widen>);
    cudaGetLastError();
    return code;
}

template <typename Narrow, typename Widen>
int start_comparison(const expected_conversion& expected, const word_range& words,
                     unsigned long long* different, void* stream) {
    compare_conversions<Narrow, Widen>
        <<<1024, 256, 0, static_cast<cudaStream_t>(stream)>>>(expected, words, different);
    return cudaGetLastError();
}

template <typename Narrow, typename Widen>
constexpr instruction_path path_of(std::string_view format) {
    return {format,
            Narrow::ptx,
            Widen::ptx,
            has_conversions<Narrow, Widen>,
            enqueue_rows_by<instruction_converter<Narrow, Widen>>,
            start_comparison<Narrow, Widen>};
}

}  // namespace mx::codec::cuda
