// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/cuda/kernels.hpp"

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <utility>

namespace mx::gemm::cuda {
namespace {

constexpr unsigned tile_cols = 32;
constexpr unsigned tile_rows = 8;

// Any step, one output per thread. The factors of a step are in shared memory with an odd row
// pitch, so that the lanes of a warp, each with its own row of B, have no bank conflicts.
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
        sa = l.a.scales + (l.where.row + row) * l.a.steps * groups;
        sb = l.b.scales + (l.where.col + col) * l.b.steps * groups;
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
            a[r * pitch + k % length] = reinterpret_cast<const factor*>(
                from.rows)[(first * from.steps + at) * length + k % length];
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

// Tiles of split and packed operands: a block of threads takes one panel of A and some of B. While
// it computes a step, it copies the next one.
constexpr unsigned panel_warps = 8;
constexpr unsigned panel_threads = panel_warps * 32;
constexpr unsigned lane_rows = panel_rows / panel_warps;

// Rows of `bytes` in shared memory, a multiple of 16 that is odd, so that lanes with neighbouring
// rows have no bank conflicts.
constexpr unsigned pitch_of(unsigned bytes) { return (bytes / 16 | 1u) * 16; }

// Queues the copy of a panel's rows.
template <unsigned bytes>
__device__ inline void copy_panel(std::byte* to, const std::byte* from) {
    constexpr unsigned parts = bytes / 16;
    constexpr unsigned pitch = pitch_of(bytes) / 16;
#pragma unroll
    for (unsigned first = 0; first < panel_rows * parts; first += panel_threads) {
        const unsigned i = first + threadIdx.x;
        if (first + panel_threads > panel_rows * parts && i >= panel_rows * parts) break;
        const unsigned place = pitch == parts ? i : i / parts * pitch + i % parts;
        __pipeline_memcpy_async(to + 16 * place, from + 16 * i, 16);
    }
}

// The position of a block's panels, and the outputs of a thread: lane_rows rows, lane_cols columns
// that are panels apart.
template <unsigned lane_cols>
struct panel_place {
    unsigned my_row = threadIdx.x / 32 * lane_rows;
    unsigned lane = threadIdx.x % 32;
    std::uint64_t panel_a, panel_b;
    std::uint64_t row, col;  // of the first output, from those of the tile; wraps around before it

    __device__ explicit panel_place(const tile_launch& l)
        : panel_a(l.where.row / panel_rows + blockIdx.y),
          panel_b(l.where.col / panel_rows + std::uint64_t{blockIdx.x} * lane_cols),
          row(panel_a * panel_rows + my_row - l.where.row),
          col(panel_b * panel_rows + lane - l.where.col) {}

    // Calls use(sum, accumulator) for every output that the tile has.
    template <typename Use>
    __device__ void each(const tile_launch& l, std::uint32_t (&sum)[lane_rows][lane_cols],
                         Use use) const {
#pragma unroll
        for (unsigned i = 0; i < lane_rows; ++i) {
#pragma unroll
            for (unsigned j = 0; j < lane_cols; ++j) {
                const std::uint64_t c = col + j * panel_rows;
                if (row + i >= l.where.rows || c >= l.where.cols) continue;
                use(sum[i][j], l.acc[(row + i) * l.where.cols + c]);
            }
        }
    }
};

// Calls take(rows of A, rows of B, sums) for every step, with the panels in shared memory, and
// keeps the sums that it leaves.
template <unsigned bytes, unsigned lane_cols, typename Take>
__device__ inline void walk_panels(const tile_launch& l, std::byte* tiles, Take take) {
    constexpr unsigned panel_bytes = panel_rows * pitch_of(bytes);
    constexpr unsigned tile_bytes = (1 + lane_cols) * panel_bytes;
    const panel_place<lane_cols> here(l);
    const auto copy = [&](std::uint64_t n) {
        const std::uint64_t step = l.steps.at(n);
        std::byte* const to = tiles + n % 2 * tile_bytes;
        copy_panel<bytes>(to, l.a.panel(here.panel_a, step, bytes));
#pragma unroll
        for (unsigned j = 0; j < lane_cols; ++j) {
            copy_panel<bytes>(to + (1 + j) * panel_bytes, l.b.panel(here.panel_b + j, step, bytes));
        }
        __pipeline_commit();
    };
    std::uint32_t sum[lane_rows][lane_cols] = {};
    here.each(l, sum, [](std::uint32_t& s, std::uint32_t at) { s = at; });
    if (l.steps.count != 0) copy(0);
    for (std::uint64_t n = 0; n < l.steps.count; ++n) {
        __pipeline_wait_prior(0);
        // All threads have copied step n, and none reads step n - 1 any more.
        __syncthreads();
        if (n + 1 < l.steps.count) copy(n + 1);
        const std::byte* const tile = tiles + n % 2 * tile_bytes;
        take(tile + here.my_row * pitch_of(bytes),
             tile + panel_bytes + here.lane * pitch_of(bytes), sum);
    }
    here.each(l, sum, [](std::uint32_t s, std::uint32_t& at) { at = s; });
}

// Not inlined: rare, and long.
template <int length>
__device__ __noinline__ std::uint32_t unusual_step(const step_rule& r, const std::byte* a,
                                                   const std::byte* b, std::uint32_t c) {
    return fused_step(r, split_row<length>(a), split_row<length>(b), c);
}

template <int length, conversion convert>
__global__ void __launch_bounds__(panel_threads, 2)
    walk_split(const __grid_constant__ tile_launch l) {
    constexpr unsigned lane_cols = 2;
    constexpr unsigned pitch = pitch_of(split_bytes(length));
    constexpr unsigned b_next = panel_rows * pitch;
    __shared__ uint4 tiles[2 * (1 + lane_cols) * panel_rows * pitch / sizeof(uint4)];
    walk_panels<split_bytes(length), lane_cols>(
        l, reinterpret_cast<std::byte*>(tiles),
        [&](const std::byte* a, const std::byte* b, std::uint32_t(&sum)[lane_rows][lane_cols]) {
            const std::uint32_t left =
                split_step<convert, length>(l.kind.rule, a, pitch, b, b_next, sum);
            if (left == 0) return;
#pragma unroll
            for (unsigned i = 0; i < lane_rows; ++i) {
#pragma unroll
                for (unsigned j = 0; j < lane_cols; ++j) {
                    if ((left >> (i * lane_cols + j) & 1u) == 0) continue;
                    sum[i][j] = unusual_step<length>(l.kind.rule, a + i * pitch, b + j * b_next,
                                                     sum[i][j]);
                }
            }
        });
}

__global__ void __launch_bounds__(panel_threads, 2)
    walk_packed(const __grid_constant__ tile_launch l) {
    constexpr unsigned lane_cols = 1;
    constexpr unsigned pitch = pitch_of(sizeof(packed_row));
    __shared__ uint4 tiles[2 * (1 + lane_cols) * panel_rows * pitch / sizeof(uint4)];
    walk_panels<sizeof(packed_row), lane_cols>(
        l, reinterpret_cast<std::byte*>(tiles),
        [&](const std::byte* a, const std::byte* b, std::uint32_t(&sum)[lane_rows][lane_cols]) {
            const packed_row own = *reinterpret_cast<const packed_row*>(b);
#pragma unroll
            for (unsigned i = 0; i < lane_rows; ++i) {
                sum[i][0] = packed_step(l.kind.rule, l.kind.least_exponent,
                                        *reinterpret_cast<const packed_row*>(a + i * pitch), own,
                                        sum[i][0]);
            }
        });
}

// The blocks of threads that cover the panels of a tile.
dim3 panels_of(const tile_launch& l, unsigned lane_cols) {
    const auto count = [](std::size_t first, std::size_t rows, std::size_t at_once) {
        const std::size_t panels = (first % panel_rows + rows + panel_rows - 1) / panel_rows;
        return static_cast<unsigned>((panels + at_once - 1) / at_once);
    };
    return {count(l.where.col, l.where.cols, lane_cols), count(l.where.row, l.where.rows, 1)};
}

template <std::size_t shape>
void start_split(const tile_launch& l, cudaStream_t stream) {
    constexpr int length = split_shapes[shape].length;
    constexpr conversion convert = split_shapes[shape].convert;
    if (l.kind.rule.length != length || l.kind.rule.convert != convert) return;
    walk_split<length, convert><<<panels_of(l, 2), panel_threads, 0, stream>>>(l);
}

template <std::size_t... shape>
void start_split(const tile_launch& l, cudaStream_t stream, std::index_sequence<shape...>) {
    (start_split<shape>(l, stream), ...);
}

void start_plain(const tile_launch& l, cudaStream_t stream) {
    const auto length = static_cast<unsigned>(l.kind.rule.length);
    const unsigned pitch = length + 1 - length % 2;
    const auto blocks = [](std::size_t outputs, unsigned at_once) {
        return static_cast<unsigned>((outputs + at_once - 1) / at_once);
    };
    const dim3 grid(blocks(l.where.cols, tile_cols), blocks(l.where.rows, tile_rows));
    const std::size_t bytes = (tile_rows + tile_cols) * pitch * sizeof(factor);
    walk<<<grid, dim3(tile_cols, tile_rows), bytes, stream>>>(l);
}

}  // namespace

int enqueue(const tile_launch& l, void* stream) {
    if (l.where.rows == 0 || l.where.cols == 0) return cudaSuccess;
    const auto on = static_cast<cudaStream_t>(stream);
    const operand_form form = form_of(l.kind);
    if (form == operand_form::split) {
        start_split(l, on, std::make_index_sequence<split_shapes.size()>());
    } else if (form == operand_form::packed) {
        walk_packed<<<panels_of(l, 1), panel_threads, 0, on>>>(l);
    } else {
        start_plain(l, on);
    }
    return cudaGetLastError();
}

}  // namespace mx::gemm::cuda
