// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime.h>

#include "libmx/codec/cuda/general_body.hpp"
#include "libmx/codec/cuda/shared_params.cuh"

namespace mx::codec::cuda {
namespace {

constexpr unsigned warps_per_block = 4;
constexpr unsigned threads = warps_per_block * lane_count;

__global__ void __launch_bounds__(threads) raise_exponents_of_segments(launch l) {
    raise_exponents(l, l.segments[blockIdx.x], threadIdx.x, threads);
}

// A warp per segment and recipe. Recipes of a segment are adjacent, so that its values are in the
// cache.
template <typename Family, int lanes>
__global__ void __launch_bounds__(threads, 4) quantize_general_segments(launch l) {
    __shared__ block_params shared[warps_per_block];
    const unsigned warp = threadIdx.x / lane_count;
    const std::uint64_t job = std::uint64_t{blockIdx.x} * warps_per_block + warp;
    const auto s = static_cast<std::uint32_t>(job / l.general_count);
    const auto r = static_cast<std::uint32_t>(job % l.general_count);
    if (s >= l.segment_count) return;
    const general_recipe& recipe = l.general[r];
    const std::uint16_t* marks = nullptr;
    if (takes_marks<Family, lanes> && recipe.numbers != nullptr) {
        marks = marks_of(l, l.recipe_count + r, s);
        if (!has_marks(l.segments[s], marks)) return;
    }
    constexpr bool of_powers = std::is_same_v<Family, power_scales>;
    if (recipe.params.scale_format->power_of_two() != of_powers) return;
    copy_to_shared(recipe.params, shared[warp]);
    quantize_general<Family, lanes>(l, recipe, shared[warp], l.segments[s],
                                    tally_of(l, l.recipe_count + r, s), marks);
}

template <typename Family>
void enqueue_family(const launch& l, cudaStream_t stream) {
    const std::uint64_t jobs = std::uint64_t{l.segment_count} * l.general_count;
    const auto blocks = static_cast<unsigned>((jobs + warps_per_block - 1) / warps_per_block);
    with_lanes(l.stride, [&](auto count) {
        constexpr int lanes = count();
        quantize_general_segments<Family, lanes><<<blocks, threads, 0, stream>>>(l);
    });
}

}  // namespace

int enqueue_general(const launch& l, void* stream_handle) {
    if (l.general_count == 0 || l.segment_count == 0) return cudaSuccess;
    auto* const stream = static_cast<cudaStream_t>(stream_handle);
    if (l.raised != nullptr) {
        raise_exponents_of_segments<<<l.segment_count, threads, 0, stream>>>(l);
    }
    if (l.powers) enqueue_family<power_scales>(l, stream);
    if (l.numbers) enqueue_family<number_scales>(l, stream);
    return cudaGetLastError();
}

int enqueue(const launch& l, void* stream) {
    int code = enqueue_codes(l, stream);
    if (code == cudaSuccess) code = enqueue_plain(l, stream);
    if (code == cudaSuccess) code = enqueue_numbers(l, stream);
    return code != cudaSuccess ? code : enqueue_general(l, stream);
}

}  // namespace mx::codec::cuda
