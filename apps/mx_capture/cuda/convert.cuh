// SPDX-License-Identifier: Apache-2.0
// Conversions of pairs: the kernels around one instruction. Op::codes(high, low): the code of `low`
// in bits 0 to 7, that of `high` in bits 8 to 15.
#pragma once

#include "apps/mx_capture/cuda/kernels.hpp"
#include "libmx/conformance/vectors/output_hash.hpp"
#include "libmx/format/cuda/instructions.cuh"

namespace mx::capture {

inline constexpr int convert_threads = 256;

template <typename Op>
__global__ void convert_pairs(const std::uint32_t* words, std::uint8_t* codes, std::size_t pairs) {
    const std::size_t i = blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
    if (i >= pairs) return;
    const std::uint32_t both = Op::codes(words[2 * i + 1], words[2 * i]);
    codes[2 * i] = static_cast<std::uint8_t>(both);
    codes[2 * i + 1] = static_cast<std::uint8_t>(both >> 8);
}

// One row of blocks per cell; sums the hashes of all float32 with one sign and exponent.
template <typename Op>
__global__ void hash_cells(unsigned long long* hash, std::uint32_t stride) {
    constexpr std::uint32_t floats = 1u << 23;
    const std::uint32_t first = blockIdx.y << 23;
    const std::uint32_t count = (floats + stride - 1) / stride;
    const std::uint32_t threads = gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        const std::uint32_t x = first | i * stride;
        sum += conformance::vectors::hash_term(x, Op::codes(x, x) & 0xffu);
    }
    atomicAdd(hash + blockIdx.y, sum);
}

template <typename Op>
void launch_convert(const std::uint32_t* words, std::uint8_t* codes, std::size_t count) {
    const std::size_t blocks = (count / 2 + convert_threads - 1) / convert_threads;
    convert_pairs<Op><<<static_cast<unsigned>(blocks), convert_threads>>>(words, codes, count / 2);
}

template <typename Op>
void launch_hash(std::uint64_t* hash, std::uint32_t stride) {
    hash_cells<Op>
        <<<dim3(16, 512), convert_threads>>>(reinterpret_cast<unsigned long long*>(hash), stride);
}

template <typename Op>
constexpr narrow_kernel narrow_row() {
    return {Op::ptx, launch_convert<Op>, launch_hash<Op>};
}

// Op::values(pair of codes): the value of the code in bits 0 to 7 in the lower half.
template <typename Op>
__global__ void widen_pairs(std::uint16_t* values, std::uint32_t pairs) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    const std::uint32_t both = Op::values(2 * i, 2 * i + 1);
    values[2 * i] = static_cast<std::uint16_t>(both);
    values[2 * i + 1] = static_cast<std::uint16_t>(both >> 16);
}

template <typename Op>
void launch_widen(std::uint16_t* values, std::size_t count) {
    widen_pairs<Op><<<1, convert_threads>>>(values, static_cast<std::uint32_t>(count / 2));
}

template <typename Op>
constexpr widen_kernel widen_row() {
    return {Op::ptx, launch_widen<Op>};
}

}  // namespace mx::capture
