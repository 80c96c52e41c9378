// SPDX-License-Identifier: Apache-2.0
// Software models for one row and a group of columns: exact sums and chains of fused multiply-adds.
// One source, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/gemm/simd/software.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "libmx/gemm/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET

namespace mx::gemm::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using double_tag = hn::ScalableTag<double>;
using half_float_tag = hn::Rebind<float, double_tag>;
using float_tag = hn::ScalableTag<float>;
using doubles = hn::Vec<double_tag>;
using floats = hn::Vec<float_tag>;

constexpr std::size_t double_lanes = hn::MaxLanes(double_tag());
constexpr std::size_t float_lanes = hn::MaxLanes(float_tag());

// Sums in twice double precision, as in exact_dot.cpp.
struct compensated {
    doubles high, low, magnitude;

    HWY_INLINE compensated() : high(hn::Zero(double_tag())), low(high), magnitude(high) {}

    HWY_INLINE void add(doubles p) {
        const doubles sum = hn::Add(high, p);
        const doubles part = hn::Sub(sum, high);
        low = hn::Add(low, hn::Add(hn::Sub(high, hn::Sub(sum, part)), hn::Sub(p, part)));
        high = sum;
        magnitude = hn::Add(magnitude, hn::Abs(p));
    }
};

}  // namespace

// The bound of exact_dot.cpp. A unit in the last place of float64 covers twice the rounding of each
// sum here.
HWY_ATTR void exact_ends(const double* a, const double* b, std::size_t count, const float* c,
                         float* least, float* most) {
    const double_tag d;
    const half_float_tag dh;
    const double n = static_cast<double>(count) + 2;
    const doubles missing_share = hn::Set(d, n * n * 0x1p-103);
    constexpr std::size_t at_once = 2;  // independent vectors, to hide the latency of additions
    static_assert(panel_lanes % (at_once * double_lanes) == 0);
    for (std::size_t lane = 0; lane < panel_lanes; lane += at_once * double_lanes) {
        compensated s[at_once];
        for (std::size_t i = 0; i < at_once; ++i) {
            s[i].add(hn::PromoteTo(d, hn::LoadU(dh, c + lane + i * double_lanes)));
        }
        for (std::size_t k = 0; k < count; ++k) {
            const doubles x = hn::Set(d, a[k]);
            const double* const y = b + k * panel_lanes + lane;
            for (std::size_t i = 0; i < at_once; ++i) {
                s[i].add(hn::Mul(x, hn::LoadU(d, y + i * double_lanes)));
            }
        }
        for (std::size_t i = 0; i < at_once; ++i) {
            const std::size_t at = lane + i * double_lanes;
            const doubles missing = hn::Mul(missing_share, s[i].magnitude);
            const doubles below = hn::Add(s[i].high, hn::Sub(s[i].low, missing));
            const doubles above = hn::Add(s[i].high, hn::Add(s[i].low, missing));
            const doubles ulp = hn::Set(d, 0x1p-51);
            const doubles least_double = hn::Set(d, 0x1p-1000);
            const auto widen = [&](doubles v) HWY_ATTR {
                return hn::Add(hn::Mul(hn::Abs(v), ulp), least_double);
            };
            hn::StoreU(hn::DemoteTo(dh, hn::Sub(below, widen(below))), dh, least + at);
            hn::StoreU(hn::DemoteTo(dh, hn::Add(above, widen(above))), dh, most + at);
        }
    }
}

// Rounded once only if the instruction set has a fused multiply-add.
HWY_ATTR void chain(const float* a, const float* b, std::size_t count, bool descending, float* c) {
    const float_tag d;
    constexpr std::size_t vectors = panel_lanes / float_lanes;
    floats sums[vectors];
    for (std::size_t i = 0; i < vectors; ++i) sums[i] = hn::LoadU(d, c + i * float_lanes);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t k = descending ? count - 1 - i : i;
        const floats x = hn::Set(d, a[k]);
        const float* const y = b + k * panel_lanes;
        for (std::size_t v = 0; v < vectors; ++v) {
            sums[v] = hn::MulAdd(x, hn::LoadU(d, y + v * float_lanes), sums[v]);
        }
    }
    for (std::size_t i = 0; i < vectors; ++i) hn::StoreU(sums[i], d, c + i * float_lanes);
}

}  // namespace mx::gemm::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
