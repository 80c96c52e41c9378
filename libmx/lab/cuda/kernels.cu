// SPDX-License-Identifier: Apache-2.0
#include "libmx/lab/cuda/kernels.hpp"

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "libmx/base/bits.hpp"

namespace mx::lab::cuda {
namespace {

// A block computes `side` by `side` outputs, a warp 32 by 64, a lane 8 by 8: two by two squares of
// 4, so that the lanes of a warp read neighbouring float4 of shared memory. Both operands come in
// slices of 8 elements of k, three of which are on their way while one is multiplied.
constexpr unsigned slice = 8;
constexpr unsigned stages = 4;
constexpr unsigned lane_side = 8;
constexpr unsigned warp_rows = 32;
constexpr unsigned warp_cols = 64;
constexpr unsigned tall = 4 * lane_side / 2;  // from a lane's first square to the one below it
constexpr unsigned wide = 8 * lane_side / 2;  // and to the one beside it

template <unsigned side>
constexpr unsigned threads_of = side / lane_side * (side / lane_side);
// Element (k, row) of a slice is at k * pitch + row. Four more than the rows: eight lanes that
// write neighbouring k write to different banks.
template <unsigned side>
constexpr unsigned pitch_of = side + 4;

// A thread's elements of the slices of an operand, in a fixed order of rows and k. Neighbouring
// threads read neighbouring addresses, along k or, if the operand is transposed, along the rows.
template <unsigned side>
class slice_reader {
    static constexpr unsigned threads = threads_of<side>;
    static constexpr unsigned count = side * slice / threads;

  public:
    __device__ slice_reader(const device_matrix& m, std::uint64_t depth, std::uint64_t first_row) {
        const unsigned row = m.transposed ? threadIdx.x % side : threadIdx.x / slice;
        const unsigned k = m.transposed ? threadIdx.x / side : threadIdx.x % slice;
        const unsigned row_step = m.transposed ? 0 : threads / slice;
        const unsigned k_step = m.transposed ? threads / side : 0;
        const std::uint64_t at_row = m.transposed ? 1 : depth, at_k = m.transposed ? m.rows : 1;
        from_ = m.data + (first_row + row) * at_row + k * at_k;
        step_ = row_step * at_row + k_step * at_k;
        slice_step_ = slice * at_k;
        to_ = k * pitch_of<side> + row;
        to_step_ = k_step * pitch_of<side> + row_step;
        for (unsigned i = 0; i < count; ++i) {
            if (first_row + row + i * row_step >= m.rows) continue;
            whole_ |= 1u << i;
            if (k + i * k_step < depth % slice) part_ |= 1u << i;
        }
    }

    // Starts to copy the next slice; `whole` is false for one that ends with the matrix before it
    // is full.
    __device__ void read(bool whole, float* to) {
        const unsigned mine = whole ? whole_ : part_;
        const float* from = from_;
        to += to_;
#pragma unroll
        for (unsigned i = 0; i < count; ++i) {
            if ((mine >> i & 1) != 0) __pipeline_memcpy_async(to, from, sizeof(float));
            from += step_;
            to += to_step_;
        }
        from_ += slice_step_;
    }

  private:
    const float* from_;
    std::uint64_t step_, slice_step_;
    unsigned to_, to_step_;
    // Which elements are in the matrix: of a whole slice, and of the part of one at the end.
    unsigned whole_ = 0, part_ = 0;
};

__device__ inline void load(const float* from, unsigned apart, float (&to)[lane_side]) {
    const float4 first = *reinterpret_cast<const float4*>(from);
    const float4 second = *reinterpret_cast<const float4*>(from + apart);
    to[0] = first.x, to[1] = first.y, to[2] = first.z, to[3] = first.w;
    to[4] = second.x, to[5] = second.y, to[6] = second.z, to[7] = second.w;
}

__device__ inline device_matrix part_of(device_matrix m, std::uint64_t at) {
    m.data += at;
    return m;
}

template <unsigned side>
__global__ void __launch_bounds__(threads_of<side>, 512 / threads_of<side>)
    multiply(const __grid_constant__ product_launch l) {
    constexpr unsigned pitch = pitch_of<side>;
    __shared__ float4 room[stages * 2 * slice * pitch / 4];
    float* const shared = reinterpret_cast<float*>(room);
    const std::uint64_t across = (l.b.rows + side - 1) / side;
    const std::uint64_t row0 = blockIdx.x / across * side;
    const std::uint64_t col0 = blockIdx.x % across * side;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned row = warp % (side / warp_rows) * warp_rows + lane / 8 * 4;
    const unsigned col = warp / (side / warp_rows) * warp_cols + lane % 8 * 4;

    const std::uint64_t which = blockIdx.y;
    slice_reader<side> a(part_of(l.a, which * l.a_step), l.depth, row0);
    slice_reader<side> b(part_of(l.b, which / l.b_shared * l.b_step), l.depth, col0);
    float* const out = l.c + which * l.c_step;
    const std::uint64_t slices = (l.depth + slice - 1) / slice;
    float* to = shared;
    const auto read = [&](std::uint64_t n) {
        if (n < slices) {
            const bool whole = n < l.depth / slice;
            a.read(whole, to);
            b.read(whole, to + slice * pitch);
            to = to == shared + (stages - 1) * 2 * slice * pitch ? shared : to + 2 * slice * pitch;
        }
        __pipeline_commit();
    };
    float sum[lane_side][lane_side] = {};
    const auto step = [&](const float* at) {
        float x[lane_side], y[lane_side];
        load(at + row, tall, x);
        load(at + slice * pitch + col, wide, y);
#pragma unroll
        for (unsigned i = 0; i < lane_side; ++i) {
#pragma unroll
            for (unsigned j = 0; j < lane_side; ++j) sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
        }
    };
    for (unsigned n = 0; n + 1 < stages; ++n) read(n);
    for (std::uint64_t n = 0; n < slices; ++n) {
        __pipeline_wait_prior(stages - 2);
        __syncthreads();
        // To where the slice before this one was, which no thread reads any more.
        read(n + stages - 1);
        const float* const at = shared + n % stages * 2 * slice * pitch;
        const std::uint64_t left = l.depth - n * slice;
        if (left >= slice) {
#pragma unroll
            for (unsigned k = 0; k < slice; ++k) step(at + k * pitch);
        } else {
            // Zeros in place of what is missing would make a sum of -0 one of +0.
#pragma unroll 1
            for (unsigned k = 0; k < left; ++k) step(at + k * pitch);
        }
    }
#pragma unroll
    for (unsigned i = 0; i < lane_side; ++i) {
        const std::uint64_t r = row0 + row + i % 4 + i / 4 * tall;
#pragma unroll
        for (unsigned j = 0; j < lane_side; ++j) {
            const std::uint64_t c = col0 + col + j % 4 + j / 4 * wide;
            if (r >= l.a.rows || c >= l.b.rows) continue;
            out[r * l.b.rows + c] = base::is_nan(sum[i][j]) ? base::quiet_nan() : sum[i][j];
        }
    }
}

template <unsigned side>
std::uint64_t blocks_of(const product_launch& l) {
    return ((l.a.rows + side - 1) / side) * ((l.b.rows + side - 1) / side);
}

}  // namespace

int enqueue(const product_launch& l, void* stream) {
    const auto on = static_cast<cudaStream_t>(stream);
    int processors = 0;
    const cudaError_t code =
        cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    if (code != cudaSuccess) return code;
    const auto count = static_cast<unsigned>(l.count);
    // Large blocks read less; small ones occupy the device earlier.
    if (blocks_of<128>(l) * l.count >= 2 * static_cast<unsigned>(processors) &&
        std::min(l.a.rows, l.b.rows) > 64) {
        const dim3 blocks(static_cast<unsigned>(blocks_of<128>(l)), count);
        multiply<128><<<blocks, threads_of<128>, 0, on>>>(l);
    } else {
        const dim3 blocks(static_cast<unsigned>(blocks_of<64>(l)), count);
        multiply<64><<<blocks, threads_of<64>, 0, on>>>(l);
    }
    return cudaGetLastError();
}

}  // namespace mx::lab::cuda
