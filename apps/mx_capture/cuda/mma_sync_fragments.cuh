// SPDX-License-Identifier: Apache-2.0
// mma.sync: one tile per warp.
#pragma once

#include "apps/mx_capture/cuda/kernels.hpp"
#include "apps/mx_capture/cuda/layouts.hpp"

namespace mx::capture {

inline constexpr int warps_per_block = 4;

struct fragments {
    std::uint32_t a[4], b[2], sfa, sfb;
};

__device__ inline fragments load_fragments(const mma_batch& p, std::size_t tile, int step,
                                           int lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    const std::size_t at =
        tile * static_cast<std::size_t>(p.steps) + static_cast<std::size_t>(step);
    const std::uint32_t* a = p.a + at * 16 * 8;
    const std::uint32_t* b = p.b + at * 8 * 8;
    fragments f;
    for (int i = 0; i < 4; ++i) f.a[i] = a[a_word(lane, i)];
    for (int i = 0; i < 2; ++i) f.b[i] = b[b_word(lane, i)];
    // Scales with selectors {0, 0}: of A row g from lane 4 g, row g + 8 from lane 4 g + 1; of B
    // column g from lane 4 g (PTX ISA, block scaling of mma.sync; NVIDIA/cutlass,
    // include/cute/atom/mma_traits_sm120.hpp: SFALayout, SFBLayout). Other lanes hold copies.
    int half = t % 2;
    if (p.where.scales == scale_layout::other_lanes) half = 1 - half;
    if (p.where.scales == scale_layout::other_pairs) half = t / 2;
    f.sfa = p.sfa[at * 16 + static_cast<std::size_t>(g + 8 * half)];
    f.sfb = p.sfb[at * 8 + static_cast<std::size_t>(g)];
    if (p.where.scales == scale_layout::reversed) {
        f.sfa = __byte_perm(f.sfa, 0, 0x0123);
        f.sfb = __byte_perm(f.sfb, 0, 0x0123);
    }
    return f;
}

// Op::issue(d, fragments): replaces C by D. Op::words: registers of D; two f16 share one.
template <typename Op>
__global__ void mma_sync_kernel(mma_batch p) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int index =
        static_cast<int>(blockIdx.x) * warps_per_block + static_cast<int>(threadIdx.x) / 32;
    if (index >= p.tiles) return;  // whole warps
    const auto tile = static_cast<std::size_t>(index);
    const int places[4] = {d_place(lane, 0), d_place(lane, 1), d_place(lane, 2), d_place(lane, 3)};
    const std::uint32_t* c = p.c + tile * 128;
    std::uint32_t* out = p.d + tile * 128;
    std::uint32_t d[Op::words];
    if constexpr (Op::words == 4) {
        for (int i = 0; i < 4; ++i) d[i] = c[places[i]];
    } else {
        for (int i = 0; i < 2; ++i) d[i] = c[places[2 * i]] | c[places[2 * i + 1]] << 16;
    }
    for (int step = 0; step < p.steps; ++step) Op::issue(d, load_fragments(p, tile, step, lane));
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
void launch_mma_sync(const mma_batch& p) {
    const int blocks = (p.tiles + warps_per_block - 1) / warps_per_block;
    mma_sync_kernel<Op><<<blocks, warps_per_block * 32>>>(p);
}

// Accumulators are untyped 32-bit registers: bits are passed unchanged.
#define MX_ACCUMULATORS_F32(d) "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])

// Operations with four words of D, and with two.
#define MX_MMA_F32(NAME, PTX)                                                               \
    struct NAME {                                                                           \
        static constexpr const char* ptx = PTX;                                             \
        static constexpr int words = 4;                                                     \
        __device__ static void issue(std::uint32_t (&d)[4], const fragments& f) {           \
            asm volatile(PTX " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"       \
                         : MX_ACCUMULATORS_F32(d)                                           \
                         : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), \
                           "r"(f.b[1]));                                                    \
        }                                                                                   \
    };
#define MX_MMA_F16(NAME, PTX)                                                               \
    struct NAME {                                                                           \
        static constexpr const char* ptx = PTX;                                             \
        static constexpr int words = 2;                                                     \
        __device__ static void issue(std::uint32_t (&d)[2], const fragments& f) {           \
            asm volatile(PTX " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"                   \
                         : "+r"(d[0]), "+r"(d[1])                                           \
                         : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), \
                           "r"(f.b[1]));                                                    \
        }                                                                                   \
    };

template <typename Op>
constexpr mma_kernel mma_sync_row() {
    return {Op::ptx, launch_mma_sync<Op>};
}

}  // namespace mx::capture
