// SPDX-License-Identifier: Apache-2.0
// Elements under a power-of-two scale to numbers of the grid, codes and counts. Compiled once per
// instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libmx/codec/simd/elements.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "libmx/base/bits.hpp"
#include "libmx/codec/simd/kernels.hpp"

HWY_BEFORE_NAMESPACE();
#include "libmx/base/simd/targets.inc"
#if MX_SIMD_TARGET
#include "libmx/codec/simd/counting.inc"

namespace mx::codec::simd::HWY_NAMESPACE {
namespace {

template <bool fixed, rounding_kind kind, bool with_codes>
class ocp_kernel : public element_rounder<fixed, kind, with_codes> {
  public:
    HWY_INLINE ocp_kernel(const element_grid& g, const block_scales& scales)
        : element_rounder<fixed, kind, with_codes>(g), scales_(scales) {}

    HWY_INLINE void set_block(std::size_t block) {
        reciprocal_ = hn::Set(float_tag(), scales_.reciprocal.data()[block]);
    }
    HWY_INLINE element_vector take(const float* x, const std::uint32_t* draws,
                                   std::uint8_t* codes) {
        const floats y = hn::Mul(hn::LoadU(float_tag(), x), reciprocal_);
        return this->round(y, draws, codes);
    }

  private:
    const block_scales& scales_;
    floats reciprocal_;
};

}  // namespace

void elements(const element_grid& g, const block_run& run, const block_scales& scales,
              const element_outputs& to, grid_counts& counts) {
    by_grid(g, [&]<bool fixed, rounding_kind kind>() {
        if (to.codes != nullptr || to.parts != nullptr) {
            run_kernel<ocp_kernel<fixed, kind, true>>(run, scales, to, counts, g, scales);
        } else {
            run_kernel<ocp_kernel<fixed, kind, false>>(run, scales, to, counts, g, scales);
        }
    });
}

}  // namespace mx::codec::simd::HWY_NAMESPACE
#endif
HWY_AFTER_NAMESPACE();
