// SPDX-License-Identifier: Apache-2.0
// The loops of kernels.hpp. One source, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/eval/simd/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>

#include "libmx/eval/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET

namespace mx::eval::simd::HWY_NAMESPACE {
namespace {
#include "libmx/eval/simd/elementwise.inc"

template <typename T>
constexpr kernels_of<T> all{norm<T>, activate<T>,   softmax<T>,    turn_head<T>,
                            add<T>,  sum_logits<T>, add_crossed<T>};
}  // namespace

// NOLINTNEXTLINE(misc-use-internal-linkage): declared in kernels.cpp
extern const kernels_of<float> float32_kernels;
extern const kernels_of<double> float64_kernels;
constinit const kernels_of<float> float32_kernels = all<float>;
constinit const kernels_of<double> float64_kernels = all<double>;

}  // namespace mx::eval::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
