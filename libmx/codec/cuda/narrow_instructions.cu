// SPDX-License-Identifier: Apache-2.0
// Rows of fp6 and fp4 by instruction: the sm_100 and sm_120 architectures.
#include "libmx/codec/cuda/instruction_paths.cuh"

namespace mx::codec::cuda {
namespace {

MX_NARROW_FP4(to_e2m1, "cvt.rn.satfinite.e2m1x2.f32")
MX_NARROW(to_e2m3, "cvt.rn.satfinite.e2m3x2.f32")
MX_NARROW(to_e3m2, "cvt.rn.satfinite.e3m2x2.f32")
MX_WIDEN_FP4(from_e2m1, "cvt.rn.f16x2.e2m1x2")
MX_WIDEN(from_e2m3, "cvt.rn.f16x2.e2m3x2")
MX_WIDEN(from_e3m2, "cvt.rn.f16x2.e3m2x2")

constexpr instruction_path paths[] = {path_of<to_e2m1, from_e2m1>("e2m1"),
                                      path_of<to_e2m3, from_e2m3>("e2m3"),
                                      path_of<to_e3m2, from_e3m2>("e3m2")};

}  // namespace

std::span<const instruction_path> narrow_paths() { return paths; }

}  // namespace mx::codec::cuda
