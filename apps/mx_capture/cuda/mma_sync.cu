// SPDX-License-Identifier: Apache-2.0
// mma.sync of f16, bf16 and tf32.
#include "apps/mx_capture/cuda/mma_sync_fragments.cuh"

namespace mx::capture {
namespace {

MX_MMA_F32(bf16_f32, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
MX_MMA_F32(f16_f32, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
MX_MMA_F16(f16_f16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
MX_MMA_F32(tf32_f32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32")

constexpr mma_kernel rows[] = {mma_sync_row<bf16_f32>(), mma_sync_row<f16_f32>(),
                               mma_sync_row<f16_f16>(), mma_sync_row<tf32_f32>()};

}  // namespace

std::span<const mma_kernel> mma_sync_kernels() { return rows; }

}  // namespace mx::capture
