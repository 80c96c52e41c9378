// SPDX-License-Identifier: Apache-2.0
// cvt of fp6, fp4 and ue8m0: sm_100a, sm_103a, sm_110a, sm_120a, sm_121a.
#include "apps/mx_capture/cuda/convert.cuh"

namespace mx::capture {
namespace {

// A pair of e2m1 is one byte, for which inline assembly has no register: it is made inside.
#define MX_NARROW_FP4(NAME, PTX)                                                           \
    struct NAME {                                                                          \
        static constexpr const char* ptx = PTX;                                            \
        __device__ static std::uint32_t codes(std::uint32_t high, std::uint32_t low) {     \
            std::uint16_t both;                                                            \
            asm volatile("{ .reg .b8 pair; " PTX " pair, %1, %2; mov.b16 %0, {pair, 0}; }" \
                         : "=h"(both)                                                      \
                         : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));         \
            return (both & 0xfu) | (both & 0xf0u) << 4;                                    \
        }                                                                                  \
    };

#define MX_NARROW_FP4_PACKED(NAME, PTX)                                                \
    struct NAME {                                                                      \
        static constexpr const char* ptx = PTX;                                        \
        __device__ static std::uint32_t codes(std::uint32_t high, std::uint32_t low) { \
            std::uint16_t both;                                                        \
            asm volatile("{ .reg .b8 pair; " PTX " pair, %1; mov.b16 %0, {pair, 0}; }" \
                         : "=h"(both)                                                  \
                         : "r"(high << 16 | (low & 0xffffu)));                         \
            return (both & 0xfu) | (both & 0xf0u) << 4;                                \
        }                                                                              \
    };

MX_NARROW_FP4(e2m1, "cvt.rn.satfinite.e2m1x2.f32")
MX_NARROW_FP4(e2m1_relu, "cvt.rn.satfinite.relu.e2m1x2.f32")
MX_NARROW_FP4_PACKED(e2m1_f16, "cvt.rn.satfinite.e2m1x2.f16x2")
MX_NARROW_FP4_PACKED(e2m1_relu_f16, "cvt.rn.satfinite.relu.e2m1x2.f16x2")
MX_NARROW(e2m3, "cvt.rn.satfinite.e2m3x2.f32")
MX_NARROW(e2m3_relu, "cvt.rn.satfinite.relu.e2m3x2.f32")
MX_NARROW(e3m2, "cvt.rn.satfinite.e3m2x2.f32")
MX_NARROW(e3m2_relu, "cvt.rn.satfinite.relu.e3m2x2.f32")
MX_NARROW(rp_sat, "cvt.rp.satfinite.ue8m0x2.f32")
MX_NARROW(rz_sat, "cvt.rz.satfinite.ue8m0x2.f32")
MX_NARROW(rp, "cvt.rp.ue8m0x2.f32")
MX_NARROW(rz, "cvt.rz.ue8m0x2.f32")
MX_NARROW_PACKED(rp_sat_bf16, "cvt.rp.satfinite.ue8m0x2.bf16x2")
MX_NARROW_PACKED(rz_sat_bf16, "cvt.rz.satfinite.ue8m0x2.bf16x2")
MX_NARROW_PACKED(rp_bf16, "cvt.rp.ue8m0x2.bf16x2")
MX_NARROW_PACKED(rz_bf16, "cvt.rz.ue8m0x2.bf16x2")
constexpr narrow_kernel narrow_rows[] = {
    narrow_row<e2m1>(),         narrow_row<e2m1_relu>(),   narrow_row<e2m3>(),
    narrow_row<e2m3_relu>(),    narrow_row<e3m2>(),        narrow_row<e3m2_relu>(),
    narrow_row<rp_sat>(),       narrow_row<rz_sat>(),      narrow_row<rp>(),
    narrow_row<rz>(),           narrow_row<rp_sat_bf16>(), narrow_row<rz_sat_bf16>(),
    narrow_row<rp_bf16>(),      narrow_row<rz_bf16>(),     narrow_row<e2m1_f16>(),
    narrow_row<e2m1_relu_f16>()};

#define MX_WIDEN_FP4(NAME, PTX)                                                                 \
    struct NAME {                                                                               \
        static constexpr const char* ptx = PTX;                                                 \
        __device__ static std::uint32_t values(std::uint32_t low, std::uint32_t high) {         \
            std::uint32_t both;                                                                 \
            asm volatile("{ .reg .b8 pair, rest; mov.b16 {pair, rest}, %1; " PTX " %0, pair; }" \
                         : "=r"(both)                                                           \
                         : "h"(static_cast<std::uint16_t>(low | high << 4)));                   \
            return both;                                                                        \
        }                                                                                       \
    };
MX_WIDEN_FP4(from_e2m1, "cvt.rn.f16x2.e2m1x2")
MX_WIDEN_FP4(from_e2m1_relu, "cvt.rn.relu.f16x2.e2m1x2")
MX_WIDEN(from_e2m3, "cvt.rn.f16x2.e2m3x2")
MX_WIDEN(from_e3m2, "cvt.rn.f16x2.e3m2x2")
MX_WIDEN(from_e2m3_relu, "cvt.rn.relu.f16x2.e2m3x2")
MX_WIDEN(from_e3m2_relu, "cvt.rn.relu.f16x2.e3m2x2")
MX_WIDEN(from_ue8m0, "cvt.rn.bf16x2.ue8m0x2")
constexpr widen_kernel widen_rows[] = {widen_row<from_e2m1>(),      widen_row<from_e2m3>(),
                                       widen_row<from_e3m2>(),      widen_row<from_e2m1_relu>(),
                                       widen_row<from_e2m3_relu>(), widen_row<from_e3m2_relu>(),
                                       widen_row<from_ue8m0>()};

}  // namespace

std::span<const narrow_kernel> narrow_kernels() { return narrow_rows; }
std::span<const widen_kernel> widen_kernels() { return widen_rows; }

}  // namespace mx::capture
