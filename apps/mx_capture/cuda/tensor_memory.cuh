// SPDX-License-Identifier: Apache-2.0
// Operations of a block, or a pair of blocks (GROUP 1 or 2), on tensor memory around tcgen05.mma.
// The sequences are those of the PTX ISA, canonical synchronization patterns of tcgen05, and of
// NVIDIA/cutlass, include/cutlass/arch/barrier.h and include/cute/arch/tmem_allocator_sm100.hpp.
#pragma once

#include <cstdint>

namespace mx::capture {

__device__ inline void before_sync() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ inline void after_sync() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// Synchronizes all threads of the block or of both blocks: accesses before it, including those to
/// tensor memory, are visible after it.
template <int GROUP>
__device__ inline void synchronize() {
    before_sync();
    __syncthreads();
    if constexpr (GROUP == 2) {
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
    after_sync();
}

/// The index of this block in its pair.
template <int GROUP>
__device__ inline int rank_in_group() {
    if constexpr (GROUP == 1) return 0;
    std::uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}

/// Called by one warp of each block: allocates COLUMNS columns and writes their address to shared
/// memory at `to`.
template <int GROUP, int COLUMNS>
__device__ inline void allocate(std::uint32_t to) {
    if constexpr (GROUP == 1) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to),
                     "n"(COLUMNS)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
    } else {
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to),
                     "n"(COLUMNS)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
    }
}
template <int GROUP, int COLUMNS>
__device__ inline void deallocate(std::uint32_t address) {
    if constexpr (GROUP == 1) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address),
                     "n"(COLUMNS)
                     : "memory");
    } else {
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address),
                     "n"(COLUMNS)
                     : "memory");
    }
}

/// Called by the issuing thread: signals completion to the barrier, in both blocks of a pair.
template <int GROUP>
__device__ inline void commit(std::uint32_t barrier) {
    if constexpr (GROUP == 1) {
        asm volatile(
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                barrier)
            : "memory");
    } else {
        asm volatile(
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster"
            ".b64 [%0], %1;" ::"r"(barrier),
            "h"(static_cast<std::uint16_t>(3))
            : "memory");
    }
}

/// Whether the arrivals occurred; gives up after very many tries (about a second).
__device__ inline bool wait_for(std::uint32_t barrier) {
    constexpr int most_tries = 1 << 24;
    for (int i = 0; i < most_tries; ++i) {
        std::uint32_t done = 0;
        asm volatile(
            "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; "
            "selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier)
            : "memory");
        if (done != 0) return true;
    }
    return false;
}

/// Stores 16 columns from `at` for the warp's 32 lanes, one per thread.
__device__ inline void store_16(std::uint32_t at, const std::uint32_t (&r)[16]) {
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], "
        "{%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16};" ::"r"(at),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]),
        "r"(r[8]), "r"(r[9]), "r"(r[10]), "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15])
        : "memory");
}
__device__ inline void store_4(std::uint32_t at, const std::uint32_t (&r)[4]) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}
__device__ inline void wait_for_stores() {
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
__device__ inline void load_16(std::uint32_t at, std::uint32_t (&r)[16]) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x16.b32 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, [%16];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]), "=r"(r[4]), "=r"(r[5]), "=r"(r[6]),
          "=r"(r[7]), "=r"(r[8]), "=r"(r[9]), "=r"(r[10]), "=r"(r[11]), "=r"(r[12]), "=r"(r[13]),
          "=r"(r[14]), "=r"(r[15])
        : "r"(at)
        : "memory");
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

}  // namespace mx::capture
