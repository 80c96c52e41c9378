// SPDX-License-Identifier: Apache-2.0
// cvt of e4m3 and e5m2: sm_89 and later.
#include "apps/mx_capture/cuda/convert.cuh"

namespace mx::capture {
namespace {

MX_NARROW(e4m3, "cvt.rn.satfinite.e4m3x2.f32")
MX_NARROW(e4m3_relu, "cvt.rn.satfinite.relu.e4m3x2.f32")
MX_NARROW_PACKED(e4m3_f16, "cvt.rn.satfinite.e4m3x2.f16x2")
MX_NARROW_PACKED(e4m3_relu_f16, "cvt.rn.satfinite.relu.e4m3x2.f16x2")
MX_NARROW(e5m2, "cvt.rn.satfinite.e5m2x2.f32")
MX_NARROW(e5m2_relu, "cvt.rn.satfinite.relu.e5m2x2.f32")
MX_NARROW_PACKED(e5m2_f16, "cvt.rn.satfinite.e5m2x2.f16x2")
MX_NARROW_PACKED(e5m2_relu_f16, "cvt.rn.satfinite.relu.e5m2x2.f16x2")
constexpr narrow_kernel narrow_rows[] = {narrow_row<e4m3>(),     narrow_row<e4m3_relu>(),
                                         narrow_row<e4m3_f16>(), narrow_row<e4m3_relu_f16>(),
                                         narrow_row<e5m2>(),     narrow_row<e5m2_relu>(),
                                         narrow_row<e5m2_f16>(), narrow_row<e5m2_relu_f16>()};

MX_WIDEN(from_e4m3, "cvt.rn.f16x2.e4m3x2")
MX_WIDEN(from_e5m2, "cvt.rn.f16x2.e5m2x2")
MX_WIDEN(from_e4m3_relu, "cvt.rn.relu.f16x2.e4m3x2")
MX_WIDEN(from_e5m2_relu, "cvt.rn.relu.f16x2.e5m2x2")
constexpr widen_kernel widen_rows[] = {widen_row<from_e4m3>(), widen_row<from_e5m2>(),
                                       widen_row<from_e4m3_relu>(), widen_row<from_e5m2_relu>()};

}  // namespace

std::span<const narrow_kernel> fp8_narrow_kernels() { return narrow_rows; }
std::span<const widen_kernel> fp8_widen_kernels() { return widen_rows; }

}  // namespace mx::capture
