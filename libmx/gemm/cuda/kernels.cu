// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/cuda/kernels.hpp"

#include <cuda_runtime.h>

namespace mx::gemm::cuda {
namespace {

constexpr unsigned tile_cols = 32;
constexpr unsigned tile_rows = 8;

// One output per thread. The factors of a step lie in shared memory, rows apart by an odd number of
// them, so that the lanes of a warp, each with a row of B, do not wait for one another.
__global__ void __launch_bounds__(tile_cols* tile_rows) walk(tile_launch l) {
    extern __shared__ unsigned char raw[];
    const auto length = static_cast<unsigned>(l.kind.rule.length);
    const unsigned pitch = length + 1 - length % 2;
    factor* const a = reinterpret_cast<factor*>(raw);
    factor* const b = a + tile_rows * pitch;
    const std::uint64_t row0 = std::uint64_t{blockIdx.y} * tile_rows;
    const std::uint64_t col0 = std::uint64_t{blockIdx.x} * tile_cols;
    const std::uint64_t row = row0 + threadIdx.y;
    const std::uint64_t col = col0 + threadIdx.x;
    const bool mine = row < l.where.rows && col < l.where.cols;
    const unsigned thread = threadIdx.y * tile_cols + threadIdx.x;
    const std::uint64_t groups = groups_of(l.kind);
    const scale_factor* sa = nullptr;
    const scale_factor* sb = nullptr;
    std::uint32_t sum = 0;
    if (mine) {
        sum = l.acc[row * l.where.cols + col];
        sa = l.a.scales + (l.where.row + row) * l.a.groups;
        sb = l.b.scales + (l.where.col + col) * l.b.groups;
    }
    for (std::uint64_t i = 0; i < l.steps.count; ++i) {
        const std::uint64_t at = l.steps.at(i);
        for (unsigned k = thread; k < (tile_rows + tile_cols) * length;
             k += tile_rows * tile_cols) {
            const unsigned r = k / length;
            const bool of_a = r < tile_rows;
            const std::uint64_t in_tile = of_a ? row0 + r : col0 + r - tile_rows;
            if (in_tile >= (of_a ? l.where.rows : l.where.cols)) continue;
            const device_operand& from = of_a ? l.a : l.b;
            const std::uint64_t first = (of_a ? l.where.row : l.where.col) + in_tile;
            a[r * pitch + k % length] = from.factors[first * from.depth + at * length + k % length];
        }
        __syncthreads();
        if (mine) {
            sum = one_step(l.kind, a + threadIdx.y * pitch, b + threadIdx.x * pitch,
                           sa + at * groups, sb + at * groups, sum);
        }
        __syncthreads();
    }
    if (mine) l.acc[row * l.where.cols + col] = sum;
}

}  // namespace

int enqueue(const tile_launch& l, void* stream) {
    if (l.where.rows == 0 || l.where.cols == 0) return cudaSuccess;
    const auto length = static_cast<unsigned>(l.kind.rule.length);
    const unsigned pitch = length + 1 - length % 2;
    const dim3 grid(static_cast<unsigned>((l.where.cols + tile_cols - 1) / tile_cols),
                    static_cast<unsigned>((l.where.rows + tile_rows - 1) / tile_rows));
    walk<<<grid, dim3(tile_cols, tile_rows), (tile_rows + tile_cols) * pitch * sizeof(factor),
           static_cast<cudaStream_t>(stream)>>>(l);
    return cudaGetLastError();
}

int has_code_for_device() {
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes, walk);
}

}  // namespace mx::gemm::cuda
