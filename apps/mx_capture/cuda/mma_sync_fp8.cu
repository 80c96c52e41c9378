// SPDX-License-Identifier: Apache-2.0
// mma.sync of e4m3 and e5m2.
#include "apps/mx_capture/cuda/mma_sync_fragments.cuh"

namespace mx::capture {
namespace {

#define MX_FP8_PAIR(A, B)                                                                \
    MX_MMA_F32(A##_##B##_f32, "mma.sync.aligned.m16n8k32.row.col.f32." #A "." #B ".f32") \
    MX_MMA_F16(A##_##B##_f16, "mma.sync.aligned.m16n8k32.row.col.f16." #A "." #B ".f16")
MX_FP8_PAIR(e4m3, e4m3)
MX_FP8_PAIR(e4m3, e5m2)
MX_FP8_PAIR(e5m2, e4m3)
MX_FP8_PAIR(e5m2, e5m2)

constexpr mma_kernel rows[] = {mma_sync_row<e4m3_e4m3_f32>(), mma_sync_row<e4m3_e5m2_f32>(),
                               mma_sync_row<e5m2_e4m3_f32>(), mma_sync_row<e5m2_e5m2_f32>(),
                               mma_sync_row<e4m3_e4m3_f16>(), mma_sync_row<e4m3_e5m2_f16>(),
                               mma_sync_row<e5m2_e4m3_f16>(), mma_sync_row<e5m2_e5m2_f16>()};

}  // namespace

std::span<const mma_kernel> mma_sync_fp8_kernels() { return rows; }

}  // namespace mx::capture
