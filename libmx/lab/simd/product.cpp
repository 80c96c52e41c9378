// SPDX-License-Identifier: Apache-2.0
// A tile of a product in registers: two vectors of columns by as many rows as fit. One source,
// compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/lab/simd/product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>

#include "libmx/base/bits.hpp"
#include "libmx/lab/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET

namespace mx::lab::simd::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_AVX3
using tag = hn::FixedTag<float, 16>;
constexpr std::size_t rows = 8;
#elif HWY_TARGET == HWY_AVX2
using tag = hn::FixedTag<float, 8>;
constexpr std::size_t rows = 6;
#else
using tag = hn::FixedTag<float, 4>;
constexpr std::size_t rows = 8;
#endif
using floats = hn::Vec<tag>;
constexpr std::size_t lanes = hn::MaxLanes(tag());
constexpr std::size_t columns = 2 * lanes;

// SSE4 has no fused multiply-add. The C library's is slow but gives the same bits.
HWY_INLINE floats fused(floats a, floats b, floats c) {
#if HWY_TARGET == HWY_SSE4
    float x[lanes], y[lanes], z[lanes];
    hn::StoreU(a, tag(), x);
    hn::StoreU(b, tag(), y);
    hn::StoreU(c, tag(), z);
    for (std::size_t i = 0; i < lanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return hn::LoadU(tag(), z);
#else
    return hn::MulAdd(a, b, c);
#endif
}

}  // namespace

HWY_ATTR void product(const product_tile& t) {
    const tag d;
    floats left[rows], right[rows];
    for (std::size_t r = 0; r < rows; ++r) {
        left[r] = t.first ? hn::Zero(d) : hn::LoadU(d, t.c + r * t.c_row);
        right[r] = t.first ? hn::Zero(d) : hn::LoadU(d, t.c + r * t.c_row + lanes);
    }
    const float* a = t.a;
    const float* b = t.b;
    for (std::size_t k = 0; k < t.depth; ++k, a += t.a_depth, b += columns) {
        const floats b_left = hn::LoadU(d, b);
        const floats b_right = hn::LoadU(d, b + lanes);
        for (std::size_t r = 0; r < rows; ++r) {
            const floats x = hn::Set(d, a[r * t.a_row]);
            left[r] = fused(x, b_left, left[r]);
            right[r] = fused(x, b_right, right[r]);
        }
    }
    const floats nan = hn::Set(d, base::quiet_nan());
    for (std::size_t r = 0; r < rows; ++r) {
        hn::StoreU(hn::IfThenElse(hn::IsNaN(left[r]), nan, left[r]), d, t.c + r * t.c_row);
        hn::StoreU(hn::IfThenElse(hn::IsNaN(right[r]), nan, right[r]), d,
                   t.c + r * t.c_row + lanes);
    }
}

}  // namespace mx::lab::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
