// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma: sm_100a, sm_103a, sm_110a. One tile per block of four warps, or per pair of blocks.
// The tile occupies 16 rows and 8 columns of the outputs, which are 128 x 16 per block and 256 x 32
// per pair; elsewhere operands are zero. Operands are in shared memory, accumulators and scales in
// tensor memory. In a pair each block has half of the rows of A and of the columns of B, and all
// columns of D for its rows (PTX ISA, data path layouts A and D).
#include "apps/mx_capture/cuda/shared_operands.cuh"
#include "apps/mx_capture/cuda/tensor_memory.cuh"

namespace mx::capture {
namespace {

constexpr int rows_of_a = 128;  // of a block
constexpr int rows_of_b = 16;
constexpr int most_steps = 8;

// Columns of tensor memory, 32 bits each: 16 of accumulators (32 in pairs), then 4 per step of
// scales of A and of B. An allocation is a power of two.
constexpr int allocated_columns = 128;
constexpr std::uint32_t scale_a_column = 32;
constexpr std::uint32_t scale_b_column = 64;
constexpr std::uint32_t columns_per_step = 4;

// Unused shared memory of each block of a pair: it limits a multiprocessor to one pair at a time,
// so that no block waits for tensor memory while its partner holds some.
constexpr std::size_t unused_bytes = 128 * 1024;

// The inputs and outputs of an instruction.
struct operation {
    std::uint64_t a, b;  // matrix descriptors
    std::uint32_t d, descriptor, scale_a, scale_b;
    int read;
};

// Bits 46 to 48 are the constant 1; base offset 0, relative offsets.
__device__ std::uint64_t descriptor_at(const mma_batch& p, const std::uint32_t* operand) {
    return matrix_descriptor(p.where.matrix, shared_address(operand)) | std::uint64_t{1} << 46;
}

// The scales of row r of A are in lane r % 32, column r / 32, those of column n of B in lane n, the
// same in all four quarters of the lanes; they are the bytes of the word from 0 on (PTX ISA, block
// scaling of tcgen05.mma; NVIDIA/cutlass, include/cute/atom/mma_traits_sm100.hpp: tmem_sf_frg; the
// result of tcgen05.cp.32x128b.warpx4 for a 128 x 4 tile of scales). Each block of a pair has the
// scales of its rows of A and of all columns of B (the same: MMA_ScaleFactor of the 2x1SM atoms).
template <int GROUP>
__device__ void store_scales(const mma_batch& p, std::size_t tile, std::uint32_t lanes, int rank,
                             int row_home, int column_home) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (GROUP == 2 && p.where.scales == scale_layout::other_pairs) {
        column_home -= rank * rows_of_b;
    }
    for (int step = 0; step < p.steps; ++step) {
        const std::size_t at =
            tile * static_cast<std::size_t>(p.steps) + static_cast<std::size_t>(step);
        std::uint32_t a[4];
        std::uint32_t b[4];
        for (int column = 0; column < 4; ++column) {
            int place = column * 32 + lane;
            if (p.where.scales == scale_layout::other_lanes) place = static_cast<int>(threadIdx.x);
            const int row = place - row_home;
            const int n = place - column_home;
            a[column] = row >= 0 && row < 16 ? p.sfa[at * 16 + static_cast<std::size_t>(row)] : 0u;
            b[column] = n >= 0 && n < 8 ? p.sfb[at * 8 + static_cast<std::size_t>(n)] : 0u;
            if (p.where.scales == scale_layout::reversed) {
                a[column] = __byte_perm(a[column], 0, 0x0123);
                b[column] = __byte_perm(b[column], 0, 0x0123);
            }
        }
        const std::uint32_t columns = columns_per_step * static_cast<std::uint32_t>(step);
        store_4(lanes + scale_a_column + columns, a);
        store_4(lanes + scale_b_column + columns, b);
    }
}

// Op::issue(operation), by one thread.
template <typename Op>
__global__ void tcgen05_kernel(mma_batch p) {
    constexpr int group = Op::group;
    __shared__ alignas(1024) std::uint32_t a[most_steps * rows_of_a * 8];
    __shared__ alignas(1024) std::uint32_t b[most_steps * rows_of_b * 8];
    __shared__ alignas(8) std::uint64_t barrier;
    __shared__ std::uint32_t tensor_memory;
    const int index = static_cast<int>(blockIdx.x) / group;
    const auto tile = static_cast<std::size_t>(index);
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int rank = rank_in_group<group>();
    // A recording uses every part of the instruction's outputs.
    const int row_home = index % (8 * group) * 16 - rank * rows_of_a;
    const int column_home = index / (8 * group) % (2 * group) * 8;
    fill_operand(p.where.matrix, a, rows_of_a, p.steps,
                 p.a + tile * static_cast<std::size_t>(p.steps) * 128, row_home, 16);
    fill_operand(p.where.matrix, b, rows_of_b, p.steps,
                 p.b + tile * static_cast<std::size_t>(p.steps) * 64,
                 column_home - rank * rows_of_b, 8);
    const std::uint32_t barrier_at = shared_address(&barrier);
    synchronize<group>();  // both blocks have started
    if (warp == 0) allocate<group, allocated_columns>(shared_address(&tensor_memory));
    if (thread == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_at) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    // The asynchronous proxy reads what threads wrote to shared memory.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    synchronize<group>();

    // Row m of D is lane m, column n is column n; an f16 has its own column, in the low half (PTX
    // ISA, packing format for matrix D).
    const std::uint32_t lanes = tensor_memory + (static_cast<std::uint32_t>(warp) << 21);
    const int shift = p.where.results == result_layout::high_half ? 16 : 0;
    const int row = thread - row_home;
    const bool mine = row >= 0 && row < 16;
    for (int part = 0; part < group; ++part) {
        std::uint32_t d[16];
        for (int n = 0; n < 16; ++n) {
            const int column = part * 16 + n - column_home;
            d[n] = mine && column >= 0 && column < 8
                       ? p.c[tile * 128 + static_cast<std::size_t>(row * 8 + column)] << shift
                       : 0u;
        }
        store_16(lanes + static_cast<std::uint32_t>(part * 16), d);
    }
    store_scales<group>(p, tile, lanes, rank, row_home, column_home);
    wait_for_stores();
    synchronize<group>();
    if (thread == 0 && rank == 0) {
        for (int step = 0; step < p.steps; ++step) {
            const std::uint32_t columns = columns_per_step * static_cast<std::uint32_t>(step);
            operation o;
            o.a = descriptor_at(p, a + step * rows_of_a * 8);
            o.b = descriptor_at(p, b + step * rows_of_b * 8);
            o.d = tensor_memory;
            o.descriptor = p.descriptor;
            o.scale_a = tensor_memory + scale_a_column + columns;
            o.scale_b = tensor_memory + scale_b_column + columns;
            o.read = step > 0 || p.accumulate ? 1 : 0;
            Op::issue(o);
        }
        commit<group>(barrier_at);
    }
    __syncthreads();
    const bool came = wait_for(barrier_at);
    if (!came) *p.failed = 1;
    __syncthreads();
    after_sync();
    for (int part = 0; part < group; ++part) {
        std::uint32_t d[16];
        load_16(lanes + static_cast<std::uint32_t>(part * 16), d);
        for (int n = 0; n < 16; ++n) {
            const int column = part * 16 + n - column_home;
            if (mine && column >= 0 && column < 8) {
                p.d[tile * 128 + static_cast<std::size_t>(row * 8 + column)] =
                    p.f16 ? d[n] >> shift & 0xffffu : d[n];
            }
        }
    }
    synchronize<group>();
    if (warp == 0) deallocate<group, allocated_columns>(tensor_memory);
}

template <typename Op>
void launch(const mma_batch& p) {
    cudaLaunchConfig_t how{};
    how.gridDim = dim3(static_cast<unsigned>(p.tiles * Op::group));
    how.blockDim = dim3(128);
    cudaLaunchAttribute cluster{};
    if (Op::group == 2) {
        how.dynamicSmemBytes = unused_bytes;
        // The launch reports a failure.
        (void)cudaFuncSetAttribute(tcgen05_kernel<Op>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(unused_bytes));
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim.x = 2;
        cluster.val.clusterDim.y = 1;
        cluster.val.clusterDim.z = 1;
        how.attrs = &cluster;
        how.numAttrs = 1;
    }
    (void)cudaLaunchKernelEx(&how, tcgen05_kernel<Op>, p);
}

#define MX_TCGEN05(NAME, GROUP, KIND)                                                       \
    struct NAME {                                                                           \
        static constexpr const char* ptx = "tcgen05.mma.cta_group::" #GROUP ".kind::" KIND; \
        static constexpr int group = GROUP;                                                 \
        __device__ static void issue(const operation& o) {                                  \
            asm volatile(                                                                   \
                "{ .reg .pred p; setp.ne.b32 p, %4, 0; "                                    \
                "tcgen05.mma.cta_group::" #GROUP ".kind::" KIND                             \
                " [%0], %1, %2, %3, p; }" ::"r"(o.d),                                       \
                "l"(o.a), "l"(o.b), "r"(o.descriptor), "r"(o.read)                          \
                : "memory");                                                                \
        }                                                                                   \
    };
#define MX_TCGEN05_SCALED(NAME, GROUP, KIND)                                                       \
    struct NAME {                                                                                  \
        static constexpr const char* ptx = "tcgen05.mma.cta_group::" #GROUP ".kind::" KIND;        \
        static constexpr int group = GROUP;                                                        \
        __device__ static void issue(const operation& o) {                                         \
            asm volatile(                                                                          \
                "{ .reg .pred p; setp.ne.b32 p, %4, 0; "                                           \
                "tcgen05.mma.cta_group::" #GROUP ".kind::" KIND                                    \
                " [%0], %1, %2, %3, [%5], [%6], p; }" ::"r"(o.d),                                  \
                "l"(o.a), "l"(o.b), "r"(o.descriptor), "r"(o.read), "r"(o.scale_a), "r"(o.scale_b) \
                : "memory");                                                                       \
        }                                                                                          \
    };

#define MX_KINDS(SUFFIX, GROUP)                                                        \
    MX_TCGEN05(kind_f16##SUFFIX, GROUP, "f16")                                         \
    MX_TCGEN05(kind_tf32##SUFFIX, GROUP, "tf32")                                       \
    MX_TCGEN05(kind_f8f6f4##SUFFIX, GROUP, "f8f6f4")                                   \
    MX_TCGEN05_SCALED(kind_mxf8f6f4##SUFFIX, GROUP, "mxf8f6f4.block_scale")            \
    MX_TCGEN05_SCALED(kind_mxf4##SUFFIX, GROUP, "mxf4.block_scale.block32")            \
    MX_TCGEN05_SCALED(kind_mxf4nvf4_32##SUFFIX, GROUP, "mxf4nvf4.block_scale.block32") \
    MX_TCGEN05_SCALED(kind_mxf4nvf4_16##SUFFIX, GROUP, "mxf4nvf4.block_scale.block16")
MX_KINDS(, 1)
MX_KINDS(_pair, 2)

template <typename Op>
constexpr mma_kernel row() {
    return {Op::ptx, launch<Op>};
}
#define MX_ROWS(SUFFIX)                                                                          \
    row<kind_f16##SUFFIX>(), row<kind_tf32##SUFFIX>(), row<kind_f8f6f4##SUFFIX>(),               \
        row<kind_mxf8f6f4##SUFFIX>(), row<kind_mxf4##SUFFIX>(), row<kind_mxf4nvf4_32##SUFFIX>(), \
        row<kind_mxf4nvf4_16##SUFFIX>()
constexpr mma_kernel rows[] = {MX_ROWS(), MX_ROWS(_pair)};

}  // namespace

std::span<const mma_kernel> tcgen05_kernels() { return rows; }

}  // namespace mx::capture
