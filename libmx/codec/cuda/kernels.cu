// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/kernels.hpp"

#include <cuda_runtime.h>

#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"
#include "libmx/codec/cuda/segment_body.hpp"
#include "libmx/codec/cuda/shared_params.cuh"

namespace mx::codec::cuda {
namespace {

constexpr unsigned warps_per_block = 4;

__global__ void __launch_bounds__(warps_per_block* lane_count, 3) quantize_segments(launch l) {
    __shared__ plain_params shared[warps_per_block];
    const unsigned warp = threadIdx.x / lane_count;
    const std::uint64_t job = std::uint64_t{blockIdx.x} * warps_per_block + warp;
    // Recipes of a segment are adjacent, so that its values are in the cache.
    const auto s = static_cast<std::uint32_t>(job / l.recipe_count);
    const auto r = static_cast<std::uint32_t>(job % l.recipe_count);
    if (s >= l.segment_count) return;
    const device_recipe& recipe = l.recipes[r];
    const std::uint16_t* marks = nullptr;
    if (recipe.body != segment_body) {
        marks = marks_of(l, r, s);
        if (!has_marks(l.segments[s], marks)) return;
    }
    copy_to_shared(recipe.params, shared[warp]);
    segment_tally& out = tally_of(l, r, s);
    if (recipe.parts) {
        quantize_segment<true>(shared[warp], l.segments[s], l.values, recipe.blocks, *recipe.totals,
                               out, marks);
    } else {
        quantize_segment<false>(shared[warp], l.segments[s], l.values, recipe.blocks,
                                *recipe.totals, out, marks);
    }
}

int enqueue_segments(const launch& l, void* stream) {
    const std::uint64_t jobs = std::uint64_t{l.segment_count} * l.recipe_count;
    const auto blocks = static_cast<unsigned>((jobs + warps_per_block - 1) / warps_per_block);
    quantize_segments<<<blocks, warps_per_block * lane_count, 0,
                        static_cast<cudaStream_t>(stream)>>>(l);
    return cudaGetLastError();
}

// Each body processes its own recipes of the launch.
int enqueue_all_rows(const launch& l, std::uint32_t bodies, void* stream) {
    std::uint32_t instructions = bodies & with_codes(l.by_instruction);
    // The figures of bf16 take fewer instructions by arithmetic, in pairs.
    if (l.values.type == tensor::dtype::bf16) instructions &= ~row_bodies;
    int code = cudaSuccess;
    if (bodies != instructions) code = enqueue_rows(l, bodies & ~instructions, stream);
    for (const auto& paths : {fp8_paths(), narrow_paths()}) {
        for (const instruction_path& p : paths) {
            const std::uint32_t own = instructions & with_codes(1u << row_body_of(p.format));
            if (own != 0 && code == cudaSuccess) code = p.enqueue(l, own, stream);
        }
    }
    return code;
}

}  // namespace

int enqueue_plain(const launch& l, void* stream) {
    if (l.segment_count == 0 || l.recipe_count == 0) return cudaSuccess;
    const std::uint32_t rows = l.bodies & ~(1u << segment_body);
    int code = cudaSuccess;
    if (rows != 0) code = enqueue_all_rows(l, rows, stream);
    // Also the blocks that rows marked.
    return code == cudaSuccess ? enqueue_segments(l, stream) : code;
}

}  // namespace mx::codec::cuda
