// SPDX-License-Identifier: Apache-2.0
// wgmma: sm_90a. One tile per warp group, in 16 of the 64 rows; the others are zero.
#include "apps/mx_capture/cuda/shared_operands.cuh"

namespace mx::capture {
namespace {

constexpr int rows_of_a = 64;
constexpr int rows_of_b = 8;
constexpr int most_steps = 8;

// Op::issue(d, a, b, read): D of m64n8, 16 rows per warp.
template <typename Op>
__global__ void wgmma_kernel(mma_batch p) {
    // A swizzled operand begins at a multiple of its pattern, 256 bytes.
    __shared__ alignas(256) std::uint32_t a[most_steps * rows_of_a * 8];
    __shared__ alignas(256) std::uint32_t b[most_steps * rows_of_b * 8];
    const auto tile = static_cast<std::size_t>(blockIdx.x);
    const int home = static_cast<int>(blockIdx.x % 4);  // the warp that has the tile's rows
    const matrix_layout layout = p.where.matrix;
    fill_operand(layout, a, rows_of_a, p.steps,
                 p.a + tile * static_cast<std::size_t>(p.steps) * 128, home * 16, 16);
    fill_operand(layout, b, rows_of_b, p.steps,
                 p.b + tile * static_cast<std::size_t>(p.steps) * 64, 0, 8);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const bool mine = static_cast<int>(threadIdx.x) / 32 == home;
    const int places[4] = {d_place(lane, 0), d_place(lane, 1), d_place(lane, 2), d_place(lane, 3)};
    const std::uint32_t* c = p.c + tile * 128;
    std::uint32_t d[Op::words] = {};
    if (mine) {
        if constexpr (Op::words == 4) {
            for (int i = 0; i < 4; ++i) d[i] = c[places[i]];
        } else {
            for (int i = 0; i < 2; ++i) d[i] = c[places[2 * i]] | c[places[2 * i + 1]] << 16;
        }
    }
    // The asynchronous proxy reads what threads wrote to shared memory.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    for (int step = 0; step < p.steps; ++step) {
        const std::uint64_t at_a =
            matrix_descriptor(layout, shared_address(a + step * rows_of_a * 8));
        const std::uint64_t at_b =
            matrix_descriptor(layout, shared_address(b + step * rows_of_b * 8));
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        Op::issue(d, at_a, at_b, step > 0 || p.accumulate ? 1 : 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    if (!mine) return;
    std::uint32_t* out = p.d + tile * 128;
    if constexpr (Op::words == 4) {
        for (int i = 0; i < 4; ++i) out[places[i]] = d[i];
    } else {
        for (int i = 0; i < 2; ++i) {
            out[places[2 * i]] = d[i] & 0xffffu;
            out[places[2 * i + 1]] = d[i] >> 16;
        }
    }
}

template <typename Op>
void launch(const mma_batch& p) {
    wgmma_kernel<Op><<<p.tiles, 128>>>(p);
}

// LAST: the immediates after the predicate: factors 1 of A and B, and for 16-bit operands "not
// transposed".
#define MX_WGMMA_F32(NAME, PTX, LAST)                                                         \
    struct NAME {                                                                             \
        static constexpr const char* ptx = PTX;                                               \
        static constexpr int words = 4;                                                       \
        __device__ static void issue(std::uint32_t (&d)[4], std::uint64_t a, std::uint64_t b, \
                                     int read) {                                              \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %6, 0; " PTX                         \
                         " {%0,%1,%2,%3}, %4, %5, p, " LAST "; }"                             \
                         : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                     \
                         : "l"(a), "l"(b), "r"(read)                                          \
                         : "memory");                                                         \
        }                                                                                     \
    };
#define MX_WGMMA_F16(NAME, PTX, LAST)                                                              \
    struct NAME {                                                                                  \
        static constexpr const char* ptx = PTX;                                                    \
        static constexpr int words = 2;                                                            \
        __device__ static void issue(std::uint32_t (&d)[2], std::uint64_t a, std::uint64_t b,      \
                                     int read) {                                                   \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; " PTX " {%0,%1}, %2, %3, p, " LAST \
                         "; }"                                                                     \
                         : "+r"(d[0]), "+r"(d[1])                                                  \
                         : "l"(a), "l"(b), "r"(read)                                               \
                         : "memory");                                                              \
        }                                                                                          \
    };

MX_WGMMA_F32(bf16_f32, "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", "1, 1, 0, 0")
MX_WGMMA_F32(f16_f32, "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "1, 1, 0, 0")
MX_WGMMA_F16(f16_f16, "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", "1, 1, 0, 0")
MX_WGMMA_F32(tf32_f32, "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "1, 1")
#define MX_FP8_PAIR(A, B)                                                                       \
    MX_WGMMA_F32(A##_##B##_f32, "wgmma.mma_async.sync.aligned.m64n8k32.f32." #A "." #B, "1, 1") \
    MX_WGMMA_F16(A##_##B##_f16, "wgmma.mma_async.sync.aligned.m64n8k32.f16." #A "." #B, "1, 1")
MX_FP8_PAIR(e4m3, e4m3)
MX_FP8_PAIR(e4m3, e5m2)
MX_FP8_PAIR(e5m2, e4m3)
MX_FP8_PAIR(e5m2, e5m2)

template <typename Op>
constexpr mma_kernel row() {
    return {Op::ptx, launch<Op>};
}
constexpr mma_kernel rows[] = {row<bf16_f32>(),      row<f16_f32>(),       row<f16_f16>(),
                               row<tf32_f32>(),      row<e4m3_e4m3_f32>(), row<e4m3_e5m2_f32>(),
                               row<e5m2_e4m3_f32>(), row<e5m2_e5m2_f32>(), row<e4m3_e4m3_f16>(),
                               row<e4m3_e5m2_f16>(), row<e5m2_e4m3_f16>(), row<e5m2_e5m2_f16>()};

}  // namespace

std::span<const mma_kernel> wgmma_kernels() { return rows; }

}  // namespace mx::capture
