// SPDX-License-Identifier: Apache-2.0
// Rows of e4m3 and e5m2 by instruction: sm_89 and later.
#include "libmx/codec/cuda/instruction_paths.cuh"

namespace mx::codec::cuda {
namespace {

MX_NARROW(to_e4m3, "cvt.rn.satfinite.e4m3x2.f32")
MX_NARROW(to_e5m2, "cvt.rn.satfinite.e5m2x2.f32")
MX_WIDEN(from_e4m3, "cvt.rn.f16x2.e4m3x2")
MX_WIDEN(from_e5m2, "cvt.rn.f16x2.e5m2x2")

constexpr instruction_path paths[] = {path_of<to_e4m3, from_e4m3>("e4m3"),
                                      path_of<to_e5m2, from_e5m2>("e5m2")};

}  // namespace

std::span<const instruction_path> fp8_paths() { return paths; }

}  // namespace mx::codec::cuda
