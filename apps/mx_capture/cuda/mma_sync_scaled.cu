// SPDX-License-Identifier: Apache-2.0
// mma.sync of any two of fp8, fp6 and fp4, and with block scales: sm_120a, sm_121a.
#include "apps/mx_capture/cuda/mma_sync_fragments.cuh"

namespace mx::capture {
namespace {

#define MX_MMA_SCALED(NAME, PTX)                                                            \
    struct NAME {                                                                           \
        static constexpr const char* ptx = PTX;                                             \
        static constexpr int words = 4;                                                     \
        __device__ static void issue(std::uint32_t (&d)[4], const fragments& f) {           \
            asm volatile(PTX                                                                \
                         " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, "          \
                         "{%10}, {%11,%11}, {%12}, {%11,%11};"                              \
                         : MX_ACCUMULATORS_F32(d)                                           \
                         : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), \
                           "r"(f.b[1]), "r"(f.sfa), "n"(0), "r"(f.sfb));                    \
        }                                                                                   \
    };

#define MX_SCALED_PAIR(A, B)                                                                    \
    MX_MMA_SCALED(A##_##B,                                                                      \
                  "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col." \
                  "f32." #A "." #B ".f32.ue8m0")
#define MX_ALL_B(X, A) X(A, e4m3) X(A, e5m2) X(A, e3m2) X(A, e2m3) X(A, e2m1)
#define MX_ALL_PAIRS(X) \
    MX_ALL_B(X, e4m3) MX_ALL_B(X, e5m2) MX_ALL_B(X, e3m2) MX_ALL_B(X, e2m3) MX_ALL_B(X, e2m1)
MX_ALL_PAIRS(MX_SCALED_PAIR)
#define MX_MIXED_PAIR(A, B)                                                            \
    MX_MMA_F32(A##_##B##_f32,                                                          \
               "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32." #A "." #B ".f32") \
    MX_MMA_F16(A##_##B##_f16,                                                          \
               "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f16." #A "." #B ".f16")
MX_ALL_PAIRS(MX_MIXED_PAIR)

MX_MMA_SCALED(mxf4,
              "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32."
              "e2m1.e2m1.f32.ue8m0")
MX_MMA_SCALED(mxf4nvf4_32,
              "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32."
              "e2m1.e2m1.f32.ue8m0")
MX_MMA_SCALED(nvfp4,
              "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32."
              "e2m1.e2m1.f32.ue4m3")

#define MX_ROW(A, B) \
    mma_sync_row<A##_##B>(), mma_sync_row<A##_##B##_f32>(), mma_sync_row<A##_##B##_f16>(),
constexpr mma_kernel rows[] = {MX_ALL_PAIRS(MX_ROW) mma_sync_row<mxf4>(),
                               mma_sync_row<mxf4nvf4_32>(), mma_sync_row<nvfp4>()};

}  // namespace

std::span<const mma_kernel> mma_sync_scaled_kernels() { return rows; }

}  // namespace mx::capture
