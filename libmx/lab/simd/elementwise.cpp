// SPDX-License-Identifier: Apache-2.0
// The loops of kernels.hpp. One source, compiled per instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/lab/simd/elementwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/lab/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET

namespace mx::lab::simd::HWY_NAMESPACE {
#include "libmx/lab/simd/elementwise.inc"
}  // namespace mx::lab::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
