// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma: sm_100a and sm_103a. A tile per block of four warps; of the 128 x 16 outputs of the
// instruction it has 16 rows and 8 columns, elsewhere operands are zero. Operands lie in shared
// memory, accumulators and scales in tensor memory.
#include "apps/mx_capture/cuda/shared_operands.cuh"

namespace mx::capture {
namespace {

constexpr int rows_of_a = 128;
constexpr int rows_of_b = 16;
constexpr int most_steps = 8;

// Columns of tensor memory, 32 bits each: 16 of accumulators, then 4 per step of scales of A and of
// B. An allocation is a power of two.
constexpr std::uint32_t allocated_columns = 128;
constexpr std::uint32_t scale_a_column = 32;
constexpr std::uint32_t scale_b_column = 64;
constexpr std::uint32_t columns_per_step = 4;

// A wait of this many tries, a second or so, has no end.
constexpr int most_tries = 1 << 24;

__device__ void before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ void after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// The warp's 32 lanes, one per thread, 16 columns from `at`.
__device__ void store_16(std::uint32_t at, const std::uint32_t (&r)[16]) {
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], "
        "{%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16};" ::"r"(at),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]),
        "r"(r[8]), "r"(r[9]), "r"(r[10]), "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15])
        : "memory");
}
__device__ void load_16(std::uint32_t at, std::uint32_t (&r)[16]) {
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
__device__ void store_4(std::uint32_t at, const std::uint32_t (&r)[4]) {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
}

// What an instruction reads and writes.
struct operation {
    std::uint64_t a, b;  // matrix descriptors
    std::uint32_t d, descriptor, scale_a, scale_b;
    int read;
};

// Whether the arrivals came.
__device__ bool wait_for(std::uint32_t barrier) {
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

// The scales of row r of A in lane r % 32, column r / 32, those of column n of B in lane n, in all
// four quarters of the lanes alike; of the word, the bytes from 0 on (PTX ISA, scale factors of
// tcgen05.mma; what tcgen05.cp.32x128b.warpx4 makes of a 128 x 4 tile of scales).
__device__ void store_scales(const mma_batch& p, std::size_t tile, std::uint32_t lanes,
                             int row_home, int column_home) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int step = 0; step < p.steps; ++step) {
        const std::size_t at =
            tile * static_cast<std::size_t>(p.steps) + static_cast<std::size_t>(step);
        std::uint32_t a[4];
        std::uint32_t b[4];
        for (int column = 0; column < 4; ++column) {
            const int row = column * 32 + lane - row_home;
            const int n = column * 32 + lane - column_home;
            a[column] = row >= 0 && row < 16 ? p.sfa[at * 16 + static_cast<std::size_t>(row)] : 0u;
            b[column] = n >= 0 && n < 8 ? p.sfb[at * 8 + static_cast<std::size_t>(n)] : 0u;
        }
        const std::uint32_t columns = columns_per_step * static_cast<std::uint32_t>(step);
        store_4(lanes + scale_a_column + columns, a);
        store_4(lanes + scale_b_column + columns, b);
    }
}

// Op::issue(operation), by one thread.
template <typename Op>
__global__ void tcgen05_kernel(mma_batch p) {
    __shared__ alignas(128) std::uint32_t a[most_steps * rows_of_a * 8];
    __shared__ alignas(128) std::uint32_t b[most_steps * rows_of_b * 8];
    __shared__ alignas(8) std::uint64_t barrier;
    __shared__ std::uint32_t tensor_memory;
    const auto tile = static_cast<std::size_t>(blockIdx.x);
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    // Over a recording every part of the instruction's outputs is used.
    const int row_home = static_cast<int>(blockIdx.x % 8) * 16;
    const int column_home = static_cast<int>(blockIdx.x / 8 % 2) * 8;
    fill_operand(a, rows_of_a, p.steps, p.a + tile * static_cast<std::size_t>(p.steps) * 128,
                 row_home, 16);
    fill_operand(b, rows_of_b, p.steps, p.b + tile * static_cast<std::size_t>(p.steps) * 64,
                 column_home, 8);
    const std::uint32_t barrier_at = shared_address(&barrier);
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                         shared_address(&tensor_memory)),
                     "n"(allocated_columns)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
    }
    if (thread == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_at) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    // What threads wrote to shared memory is read by the asynchronous proxy.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    before_sync();
    __syncthreads();
    after_sync();

    // Row m of D is lane m, column n is column n; an f16 has a column of its own (NVIDIA/cutlass,
    // include/cute/atom/mma_traits_sm100.hpp: tmem_frg_1sm<c_type, int32_t>), in the low half.
    const std::uint32_t lanes = tensor_memory + (static_cast<std::uint32_t>(warp) << 21);
    const int row = thread - row_home;
    const bool mine = row >= 0 && row < 16;
    std::uint32_t d[16];
    for (int n = 0; n < 16; ++n) {
        const int column = n - column_home;
        d[n] = mine && column >= 0 && column < 8
                   ? p.c[tile * 128 + static_cast<std::size_t>(row * 8 + column)]
                   : 0u;
    }
    store_16(lanes, d);
    store_scales(p, tile, lanes, row_home, column_home);
    asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
    before_sync();
    __syncthreads();
    if (thread == 0) {
        after_sync();
        for (int step = 0; step < p.steps; ++step) {
            // Bits 46 to 48 are the constant 1; no swizzle, base offset 0, relative offsets.
            constexpr std::uint64_t fixed = std::uint64_t{1} << 46;
            const std::uint32_t columns = columns_per_step * static_cast<std::uint32_t>(step);
            operation o;
            o.a = matrix_descriptor(shared_address(a + step * rows_of_a * 8)) | fixed;
            o.b = matrix_descriptor(shared_address(b + step * rows_of_b * 8)) | fixed;
            o.d = tensor_memory;
            o.descriptor = p.descriptor;
            o.scale_a = tensor_memory + scale_a_column + columns;
            o.scale_b = tensor_memory + scale_b_column + columns;
            o.read = step > 0 || p.accumulate ? 1 : 0;
            Op::issue(o);
        }
        asm volatile(
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                barrier_at)
            : "memory");
    }
    const bool came = wait_for(barrier_at);
    if (!came) *p.failed = 1;
    __syncthreads();
    after_sync();
    load_16(lanes, d);
    for (int n = 0; n < 16; ++n) {
        const int column = n - column_home;
        if (mine && column >= 0 && column < 8) {
            p.d[tile * 128 + static_cast<std::size_t>(row * 8 + column)] = d[n];
        }
    }
    before_sync();
    __syncthreads();
    after_sync();
    if (warp == 0) {
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tensor_memory),
                     "n"(allocated_columns)
                     : "memory");
    }
}

template <typename Op>
void launch(const mma_batch& p) {
    tcgen05_kernel<Op><<<p.tiles, 128>>>(p);
}

#define MX_TCGEN05(NAME, PTX)                                               \
    struct NAME {                                                           \
        static constexpr const char* ptx = PTX;                             \
        __device__ static void issue(const operation& o) {                  \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; " PTX       \
                         " [%0], %1, %2, %3, p; }" ::"r"(o.d),              \
                         "l"(o.a), "l"(o.b), "r"(o.descriptor), "r"(o.read) \
                         : "memory");                                       \
        }                                                                   \
    };
#define MX_TCGEN05_SCALED(NAME, PTX)                                                         \
    struct NAME {                                                                            \
        static constexpr const char* ptx = PTX;                                              \
        __device__ static void issue(const operation& o) {                                   \
            asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; " PTX                        \
                         " [%0], %1, %2, %3, [%5], [%6], p; }" ::"r"(o.d),                   \
                         "l"(o.a), "l"(o.b), "r"(o.descriptor), "r"(o.read), "r"(o.scale_a), \
                         "r"(o.scale_b)                                                      \
                         : "memory");                                                        \
        }                                                                                    \
    };

MX_TCGEN05(kind_f16, "tcgen05.mma.cta_group::1.kind::f16")
MX_TCGEN05(kind_tf32, "tcgen05.mma.cta_group::1.kind::tf32")
MX_TCGEN05(kind_f8f6f4, "tcgen05.mma.cta_group::1.kind::f8f6f4")
MX_TCGEN05_SCALED(kind_mxf8f6f4, "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale")
MX_TCGEN05_SCALED(kind_mxf4, "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block32")
MX_TCGEN05_SCALED(kind_mxf4nvf4_32, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block32")
MX_TCGEN05_SCALED(kind_mxf4nvf4_16, "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16")

template <typename Op>
constexpr mma_kernel row() {
    return {Op::ptx, launch<Op>};
}
constexpr mma_kernel rows[] = {row<kind_f16>(),        row<kind_tf32>(), row<kind_f8f6f4>(),
                               row<kind_mxf8f6f4>(),   row<kind_mxf4>(), row<kind_mxf4nvf4_32>(),
                               row<kind_mxf4nvf4_16>()};

}  // namespace

std::span<const mma_kernel> tcgen05_kernels() { return rows; }

}  // namespace mx::capture
