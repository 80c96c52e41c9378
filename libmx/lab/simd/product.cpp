// SPDX-License-Identifier: Apache-2.0
// A tile of a product in registers: two vectors of columns by as many rows as fit. One source,
// compiled per instruction set, for float32 and float64.
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
constexpr std::size_t bytes = 64;
constexpr std::size_t rows = 8;
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t bytes = 32;
constexpr std::size_t rows = 6;
#else
constexpr std::size_t bytes = 16;
constexpr std::size_t rows = 8;
#endif
template <typename T>
using tag = hn::FixedTag<T, bytes / sizeof(T)>;
template <typename T>
using vector = hn::Vec<tag<T>>;

// SSE4 has no fused multiply-add. The C library's is slow but gives the same bits.
template <typename T>
HWY_INLINE vector<T> fused(vector<T> a, vector<T> b, vector<T> c) {
#if HWY_TARGET == HWY_SSE4
    constexpr std::size_t lanes = hn::MaxLanes(tag<T>());
    T x[lanes], y[lanes], z[lanes];
    hn::StoreU(a, tag<T>(), x);
    hn::StoreU(b, tag<T>(), y);
    hn::StoreU(c, tag<T>(), z);
    for (std::size_t i = 0; i < lanes; ++i) z[i] = std::fma(x[i], y[i], z[i]);
    return hn::LoadU(tag<T>(), z);
#else
    return hn::MulAdd(a, b, c);
#endif
}

template <typename T>
HWY_ATTR void product_of(const product_tile<T>& t) {
    const tag<T> d;
    constexpr std::size_t lanes = hn::MaxLanes(tag<T>());
    constexpr std::size_t columns = 2 * lanes;
    vector<T> left[rows], right[rows];
    for (std::size_t r = 0; r < rows; ++r) {
        left[r] = t.first ? hn::Zero(d) : hn::LoadU(d, t.c + r * t.c_row);
        right[r] = t.first ? hn::Zero(d) : hn::LoadU(d, t.c + r * t.c_row + lanes);
    }
    const T* a = t.a;
    const T* b = t.b;
    for (std::size_t k = 0; k < t.depth; ++k, a += t.a_depth, b += columns) {
        const vector<T> b_left = hn::LoadU(d, b);
        const vector<T> b_right = hn::LoadU(d, b + lanes);
        for (std::size_t r = 0; r < rows; ++r) {
            const vector<T> x = hn::Set(d, a[r * t.a_row]);
            left[r] = fused<T>(x, b_left, left[r]);
            right[r] = fused<T>(x, b_right, right[r]);
        }
    }
    const vector<T> nan = hn::Set(d, static_cast<T>(base::quiet_nan()));
    for (std::size_t r = 0; r < rows; ++r) {
        hn::StoreU(hn::IfThenElse(hn::IsNaN(left[r]), nan, left[r]), d, t.c + r * t.c_row);
        hn::StoreU(hn::IfThenElse(hn::IsNaN(right[r]), nan, right[r]), d,
                   t.c + r * t.c_row + lanes);
    }
}

}  // namespace

HWY_ATTR void product(const product_tile<float>& t) { product_of(t); }
HWY_ATTR void product_float64(const product_tile<double>& t) { product_of(t); }

}  // namespace mx::lab::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
