// SPDX-License-Identifier: Apache-2.0
#include "libmx/gemm/cuda/kernels.hpp"

#include <cuda_runtime.h>

#include "libmx/gemm/packed_groups.hpp"
#include "libmx/gemm/split_step.hpp"

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

// Fused steps whose terms fit in 32 bits. A warp computes 4 rows by 64 columns, a lane 8 of these
// outputs, so that values from shared memory are reused; all lanes load the same values of A. The
// row pitch is an odd number of split_words. If a row or column of a step contains NaN or infinity,
// its outputs are computed from the factors themselves.
constexpr unsigned split_warps = 8;
constexpr unsigned lane_rows = 4;
constexpr unsigned lane_cols = 2;
constexpr unsigned split_tile_rows = split_warps * lane_rows;
constexpr unsigned split_tile_cols = 32 * lane_cols;
constexpr unsigned split_tile = split_tile_rows + split_tile_cols;

// Not inlined: rare, and long.
__device__ __noinline__ std::uint32_t step_of_factors(const step_rule& r, const factor* a,
                                                      const factor* b, std::uint32_t c) {
    return fused_step(r, a, b, c);
}

// `convert` is the rule's; a constant here, so that the compiler can specialize.
template <int length, conversion convert>
__global__ void __launch_bounds__(split_warps * 32, 2)
    walk_split(const __grid_constant__ tile_launch l) {
    constexpr unsigned pitch = length / 4 + 1 - length / 4 % 2;
    __shared__ split_words magnitude[split_tile * pitch];
    __shared__ split_words exponent[split_tile * pitch];
    __shared__ split_words sign[split_tile * pitch];
    __shared__ bool special[split_tile];
    step_rule rule = l.kind.rule;
    rule.convert = convert;
    rule.zero = zero_sign::plus;
    const std::uint64_t row0 = std::uint64_t{blockIdx.y} * split_tile_rows;
    const std::uint64_t col0 = std::uint64_t{blockIdx.x} * split_tile_cols;
    const unsigned lane = threadIdx.x % 32;
    const unsigned my_row = threadIdx.x / 32 * lane_rows;
    const split_rows a{magnitude, exponent, sign, pitch};
    constexpr unsigned of_b = split_tile_rows * pitch;
    const split_rows b{magnitude + of_b, exponent + of_b, sign + of_b, pitch};
    const auto place = [&](unsigned i, unsigned j) {
        return (row0 + my_row + i) * l.where.cols + col0 + lane + 32 * j;
    };
    const auto mine = [&](unsigned i, unsigned j) {
        return row0 + my_row + i < l.where.rows && col0 + lane + 32 * j < l.where.cols;
    };
    // The first factor of row `r` of the tile (A's rows, then B's) in step `at`; null beyond the
    // matrix.
    const auto factors_of = [&](unsigned r, std::uint64_t at) -> const factor* {
        const bool is_a = r < split_tile_rows;
        const std::uint64_t in_tile = is_a ? row0 + r : col0 + (r - split_tile_rows);
        if (in_tile >= (is_a ? l.where.rows : l.where.cols)) return nullptr;
        const device_operand& from = is_a ? l.a : l.b;
        const std::uint64_t first = (is_a ? l.where.row : l.where.col) + in_tile;
        return from.factors + first * from.depth + at * length;
    };
    std::uint32_t sum[lane_rows][lane_cols] = {};
#pragma unroll
    for (unsigned i = 0; i < lane_rows; ++i) {
#pragma unroll
        for (unsigned j = 0; j < lane_cols; ++j) {
            if (mine(i, j)) sum[i][j] = l.acc[place(i, j)];
        }
    }
    for (std::uint64_t n = 0; n < l.steps.count; ++n) {
        const std::uint64_t at = l.steps.at(n);
        if (threadIdx.x < split_tile) special[threadIdx.x] = false;
        __syncthreads();
        for (unsigned k = threadIdx.x; k < split_tile * length; k += split_warps * 32) {
            const unsigned r = k / length;
            const factor* const row = factors_of(r, at);
            const factor f = row == nullptr ? factor{} : row[k % length];
            if (f.what != value_class::finite) special[r] = true;
            const split_factor s = split(f, r < split_tile_rows ? split_raise(rule) : 0);
            const unsigned word = r * pitch * 4 + k % length;
            reinterpret_cast<std::uint32_t*>(magnitude)[word] = s.magnitude;
            reinterpret_cast<std::int32_t*>(exponent)[word] = s.exponent;
            reinterpret_cast<std::int32_t*>(sign)[word] = s.sign;
        }
        __syncthreads();
        std::uint32_t before[lane_rows][lane_cols];
#pragma unroll
        for (unsigned i = 0; i < lane_rows; ++i) {
#pragma unroll
            for (unsigned j = 0; j < lane_cols; ++j) before[i][j] = sum[i][j];
        }
        split_step<lane_rows, lane_cols, length>(rule, a, my_row, b, lane, 32, sum);
#pragma unroll
        for (unsigned i = 0; i < lane_rows; ++i) {
#pragma unroll
            for (unsigned j = 0; j < lane_cols; ++j) {
                const unsigned col = split_tile_rows + lane + 32 * j;
                if (!special[my_row + i] && !special[col]) continue;
                if (mine(i, j)) {
                    sum[i][j] = step_of_factors(l.kind.rule, factors_of(my_row + i, at),
                                                factors_of(col, at), before[i][j]);
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (unsigned i = 0; i < lane_rows; ++i) {
#pragma unroll
        for (unsigned j = 0; j < lane_cols; ++j) {
            if (mine(i, j)) l.acc[place(i, j)] = sum[i][j];
        }
    }
}

// Steps of four groups of 4-bit elements: a warp computes 4 rows by 32 columns. The row pitch is an
// odd number of words.
constexpr unsigned packed_rows = 32;
constexpr unsigned packed_cols = 32;
constexpr unsigned packed_words = sizeof(packed_group) / sizeof(std::uint32_t);
constexpr unsigned packed_pitch = packed_groups * packed_words + 1;

__device__ inline void load_groups(const std::uint32_t* row, packed_group (&to)[packed_groups]) {
#pragma unroll
    for (unsigned g = 0; g < packed_groups; ++g) {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) to[g].bytes[i] = row[g * packed_words + i];
        to[g].nonzero = row[g * packed_words + 4];
    }
}

template <conversion convert>
__global__ void __launch_bounds__(split_warps * 32)
    walk_packed(const __grid_constant__ tile_launch l) {
    __shared__ std::uint32_t words[(packed_rows + packed_cols) * packed_pitch];
    step_rule rule = l.kind.rule;
    rule.convert = convert;
    rule.zero = zero_sign::plus;
    const int least_of_operand = l.kind.least_exponent / 2;
    const std::uint64_t row0 = std::uint64_t{blockIdx.y} * packed_rows;
    const std::uint64_t col = std::uint64_t{blockIdx.x} * packed_cols + threadIdx.x % 32;
    const unsigned my_row = threadIdx.x / 32 * lane_rows;
    std::uint32_t sum[lane_rows] = {};
    const auto mine = [&](unsigned i) {
        return row0 + my_row + i < l.where.rows && col < l.where.cols;
    };
#pragma unroll
    for (unsigned i = 0; i < lane_rows; ++i) {
        if (mine(i)) sum[i] = l.acc[(row0 + my_row + i) * l.where.cols + col];
    }
    for (std::uint64_t n = 0; n < l.steps.count; ++n) {
        const std::uint64_t at = l.steps.at(n);
        // One thread per group.
        const unsigned r = threadIdx.x / packed_groups;
        const unsigned g = threadIdx.x % packed_groups;
        const bool is_a = r < packed_rows;
        const std::uint64_t in_tile =
            is_a ? row0 + r : std::uint64_t{blockIdx.x} * packed_cols + (r - packed_rows);
        packed_group group{};
        if (in_tile < (is_a ? l.where.rows : l.where.cols)) {
            const device_operand& from = is_a ? l.a : l.b;
            const factor* const f = from.factors +
                                    ((is_a ? l.where.row : l.where.col) + in_tile) * from.depth +
                                    (at * packed_groups + g) * packed_group_length;
#pragma unroll
            for (int k = 0; k < packed_group_length; ++k) pack(group, k, f[k], least_of_operand);
        }
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            words[r * packed_pitch + g * packed_words + i] = group.bytes[i];
        }
        words[r * packed_pitch + g * packed_words + 4] = group.nonzero;
        __syncthreads();
        packed_group b[packed_groups];
        load_groups(words + (packed_rows + threadIdx.x % 32) * packed_pitch, b);
#pragma unroll
        for (unsigned i = 0; i < lane_rows; ++i) {
            if (!mine(i)) continue;
            packed_group a[packed_groups];
            load_groups(words + (my_row + i) * packed_pitch, a);
            sum[i] = packed_step(
                rule, l.kind.least_exponent, a, b,
                l.a.scales + (l.where.row + row0 + my_row + i) * l.a.groups + at * packed_groups,
                l.b.scales + (l.where.col + col) * l.b.groups + at * packed_groups, sum[i]);
        }
        __syncthreads();
    }
#pragma unroll
    for (unsigned i = 0; i < lane_rows; ++i) {
        if (mine(i)) l.acc[(row0 + my_row + i) * l.where.cols + col] = sum[i];
    }
}
static_assert((packed_rows + packed_cols) * packed_groups == split_warps * 32);
static_assert(split_warps * lane_rows == packed_rows);

dim3 grid_of(const tile_launch& l, unsigned cols, unsigned rows) {
    return {static_cast<unsigned>((l.where.cols + cols - 1) / cols),
            static_cast<unsigned>((l.where.rows + rows - 1) / rows)};
}

// Launches the specialized kernel for such steps, if there is one.
template <int length, conversion convert>
bool starts(const tile_launch& l, cudaStream_t stream) {
    if (l.kind.rule.length != length || l.kind.rule.convert != convert) return false;
    walk_split<length, convert>
        <<<grid_of(l, split_tile_cols, split_tile_rows), split_warps * 32, 0, stream>>>(l);
    return true;
}

bool starts_split(const tile_launch& l, cudaStream_t stream) {
    if (l.kind.how != algorithm::fused || !takes_split(l.kind.rule)) return false;
    return starts<32, conversion::rz_fp32>(l, stream) ||
           starts<32, conversion::rz_e8m13>(l, stream) ||
           starts<32, conversion::rne_fp16>(l, stream) ||
           starts<16, conversion::rz_fp32>(l, stream) ||
           starts<16, conversion::rz_e8m13>(l, stream) ||
           starts<16, conversion::rne_fp16>(l, stream) ||
           starts<8, conversion::rz_fp32>(l, stream) ||
           starts<8, conversion::rne_fp16>(l, stream) || starts<4, conversion::rz_fp32>(l, stream);
}

// The 4-bit models give float32, rounded toward zero.
bool starts_packed(const tile_launch& l, cudaStream_t stream) {
    const step_rule& r = l.kind.rule;
    if (l.kind.how != algorithm::grouped || r.convert != conversion::rz_fp32) return false;
    if (!takes_packed(r, l.kind.element_fraction_bits)) return false;
    walk_packed<conversion::rz_fp32>
        <<<grid_of(l, packed_cols, packed_rows), split_warps * 32, 0, stream>>>(l);
    return true;
}

}  // namespace

int enqueue(const tile_launch& l, void* stream) {
    if (l.where.rows == 0 || l.where.cols == 0) return cudaSuccess;
    const auto on = static_cast<cudaStream_t>(stream);
    if (!starts_split(l, on) && !starts_packed(l, on)) {
        const auto length = static_cast<unsigned>(l.kind.rule.length);
        const unsigned pitch = length + 1 - length % 2;
        walk<<<grid_of(l, tile_cols, tile_rows), dim3(tile_cols, tile_rows),
               (tile_rows + tile_cols) * pitch * sizeof(factor), on>>>(l);
    }
    return cudaGetLastError();
}

}  // namespace mx::gemm::cuda
