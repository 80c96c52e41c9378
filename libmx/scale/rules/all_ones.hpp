// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// ceil(log2(amax / ((2 - 2^-m) 2^emax))): rceil with the all-ones significand as the largest
/// value, which is 480 in E4M3 (amd/Quark `enhanced`, TetraJet's truncation-free scale). Inf or NaN
/// gives 255; zero gives code 0.
MX_HD inline int all_ones(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    const binade b = binade_of(in.amax_bits);
    const std::uint32_t largest =
        base::f32_mantissa_mask & ~(base::f32_mantissa_mask >> in.mantissa_bits);
    return clamp_to_e8m0(b.exponent - in.max_exponent + (b.mantissa > largest ? 1 : 0));
}

}  // namespace mx::scale::rules
