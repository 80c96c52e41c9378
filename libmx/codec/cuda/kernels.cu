// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/cuda/kernels.hpp"

#include <cuda_runtime.h>

#include "libmx/codec/cuda/lane_body.hpp"
#include "libmx/codec/cuda/row_grid.hpp"
#include "libmx/codec/cuda/row_kernels.hpp"
#include "libmx/codec/cuda/shared_params.cuh"

namespace mx::codec::cuda {
namespace {

constexpr unsigned warps_per_block = 4;

// All segments under the recipes that have no other body; or with `marked` those in the list of
// launch::marked, whose length is known on the device only.
__global__ void __launch_bounds__(warps_per_block* lane_count, 3)
    quantize_segments(launch l, bool marked) {
    __shared__ ocp_params shared[warps_per_block];
    const unsigned warp = threadIdx.x / lane_count;
    const std::uint64_t jobs =
        marked ? *l.marked : std::uint64_t{l.segment_count} * l.recipe_count;
    for (std::uint64_t job = std::uint64_t{blockIdx.x} * warps_per_block + warp; job < jobs;
         job += std::uint64_t{gridDim.x} * warps_per_block) {
        std::uint32_t s, r;
        if (marked) {
            r = l.marked[1 + job] / l.segment_count;
            s = l.marked[1 + job] % l.segment_count;
        } else {
            // Recipes of a segment are adjacent, so that its values are in the cache.
            s = static_cast<std::uint32_t>(job / l.recipe_count);
            r = static_cast<std::uint32_t>(job % l.recipe_count);
        }
        const device_recipe& recipe = l.recipes[r];
        if (!marked && recipe.body != segment_body) continue;
        __syncwarp();  // no lane reads the last recipe any more
        copy_to_shared(recipe.params, shared[warp]);
        const std::uint16_t* const marks = marked ? marks_of(l, r, s) : nullptr;
        segment_tally& out = tally_of(l, r, s);
        const ocp_params& p = shared[warp];
        if (recipe.parts) {
            quantize_by_lanes<ocp_scales, ocp_lanes, true>(l, recipe, p, l.segments[s], out,
                                                              marks);
        } else {
            quantize_by_lanes<ocp_scales, ocp_lanes, false>(l, recipe, p, l.segments[s], out,
                                                               marks);
        }
    }
}

int enqueue_segments(const launch& l, bool marked, void* stream) {
    const std::uint64_t jobs = std::uint64_t{l.segment_count} * l.recipe_count;
    auto blocks = static_cast<unsigned>((jobs + warps_per_block - 1) / warps_per_block);
    const int code = marked ? lower_to_resident(blocks) : cudaSuccess;
    if (code != cudaSuccess) return code;
    quantize_segments<<<blocks, warps_per_block * lane_count, 0,
                        static_cast<cudaStream_t>(stream)>>>(l, marked);
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

int enqueue_ocp(const launch& l, void* stream) {
    if (l.segment_count == 0 || l.recipe_count == 0) return cudaSuccess;
    const std::uint32_t rows = l.bodies & ~(1u << segment_body);
    int code = cudaSuccess;
    if (rows != l.bodies) code = enqueue_segments(l, false, stream);
    if (rows == 0 || code != cudaSuccess) return code;
    code = enqueue_all_rows(l, rows, stream);
    return code == cudaSuccess ? enqueue_segments(l, true, stream) : code;
}

}  // namespace mx::codec::cuda
