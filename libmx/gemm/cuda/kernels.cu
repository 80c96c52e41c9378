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

// Copies panels of rows of `bytes` to shared memory, a part of 16 bytes per thread at a time.
template <unsigned bytes>
struct panel_copy {
    static constexpr unsigned parts = bytes / 16;
    static constexpr unsigned pitch = pitch_of(bytes) / 16;
    static constexpr unsigned all_parts = panel_rows * parts;
    static_assert(pitch == parts || panel_threads % parts == 0);

    static __device__ std::size_t from() { return 16 * threadIdx.x; }
    static __device__ std::size_t to() {
        return 16 * (threadIdx.x / parts * pitch + threadIdx.x % parts);
    }
    // Queues the thread's parts of a panel; addresses are those of its first part.
    static __device__ void queue(std::byte* to, const std::byte* from) {
#pragma unroll
        for (unsigned first = 0; first < all_parts; first += panel_threads) {
            if (first + panel_threads <= all_parts || threadIdx.x < all_parts - first) {
                __pipeline_memcpy_async(to + 16 * (first / parts * pitch + first % parts),
                                        from + 16 * first, 16);
            }
        }
    }
};

// The outputs of a thread: lane_rows rows, and lane_cols columns that are panels apart. Calls
// use(sum, accumulator) for those that the tile has. The place of the first is 32 bits wide, so that
// it takes few registers; before the tile, it wraps around.
template <unsigned lane_cols, typename Use>
__device__ inline void each_output(const tile_launch& l,
                                   std::uint32_t (&sum)[lane_rows][lane_cols], Use use) {
    const unsigned row = blockIdx.y * panel_rows + threadIdx.x / 32 * lane_rows -
                         static_cast<unsigned>(l.where.row % panel_rows);
    const unsigned col = blockIdx.x * lane_cols * panel_rows + threadIdx.x % 32 -
                         static_cast<unsigned>(l.where.col % panel_rows);
#pragma unroll
    for (unsigned i = 0; i < lane_rows; ++i) {
#pragma unroll
        for (unsigned j = 0; j < lane_cols; ++j) {
            const unsigned c = col + j * panel_rows;
            if (row + i >= l.where.rows || c >= l.where.cols) continue;
            use(sum[i][j], l.acc[(row + i) * l.where.cols + c]);
        }
    }
}

// Calls take(rows of A, rows of B, sums) for every step, with the panels in shared memory, and
// keeps the sums that it leaves.
template <unsigned bytes, unsigned lane_cols, typename Take>
__device__ inline void walk_panels(const tile_launch& l, std::byte* tiles, Take take) {
    constexpr unsigned panel_bytes = panel_rows * pitch_of(bytes);
    constexpr unsigned tile_bytes = (1 + lane_cols) * panel_bytes;
    using parts = panel_copy<bytes>;
    std::uint32_t sum[lane_rows][lane_cols] = {};
    each_output(l, sum, [](std::uint32_t& s, std::uint32_t at) { s = at; });
    if (l.steps.count == 0) return;
    const std::uint64_t first = l.steps.at(0);
    const std::byte* from[1 + lane_cols];
    from[0] = l.a.panel(l.where.row / panel_rows + blockIdx.y, first, bytes) + parts::from();
#pragma unroll
    for (unsigned j = 0; j < lane_cols; ++j) {
        const std::uint64_t panel = l.where.col / panel_rows + blockIdx.x * lane_cols + j;
        from[1 + j] = l.b.panel(panel, first, bytes) + parts::from();
    }
    constexpr std::ptrdiff_t panel_size = panel_rows * bytes;
    const std::ptrdiff_t next = l.steps.descending ? -panel_size : panel_size;
    const auto copy = [&](std::byte* to) {
#pragma unroll
        for (unsigned p = 0; p < 1 + lane_cols; ++p) {
            parts::queue(to + p * panel_bytes + parts::to(), from[p]);
            from[p] += next;
        }
        __pipeline_commit();
    };
    copy(tiles);
    // No memory holds an operand of 2^32 steps.
    const auto count = static_cast<unsigned>(l.steps.count);
    for (unsigned n = 0; n < count; ++n) {
        __pipeline_wait_prior(0);
        // All threads have copied step n, and none reads step n - 1 any more.
        __syncthreads();
        const unsigned turn = n % 2;
        if (n + 1 < count) copy(tiles + (1 - turn) * tile_bytes);
        const std::byte* const tile = tiles + turn * tile_bytes;
        take(tile + threadIdx.x / 32 * lane_rows * pitch_of(bytes),
             tile + panel_bytes + threadIdx.x % 32 * pitch_of(bytes), sum);
    }
    each_output(l, sum, [](std::uint32_t s, std::uint32_t& at) { at = s; });
}

template <int length, conversion convert>
__global__ void __launch_bounds__(panel_threads, 2)
    walk_split(const __grid_constant__ tile_launch l) {
    constexpr unsigned lane_cols = 2;
    constexpr unsigned pitch = pitch_of(split_bytes(length));
    __shared__ uint4 tiles[2 * (1 + lane_cols) * panel_rows * pitch / sizeof(uint4)];
    walk_panels<split_bytes(length), lane_cols>(
        l, reinterpret_cast<std::byte*>(tiles),
        [&](const std::byte* a, const std::byte* b, std::uint32_t(&sum)[lane_rows][lane_cols]) {
            split_step<convert, length>(l.kind.rule, a, pitch, b, panel_rows * pitch, sum);
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
