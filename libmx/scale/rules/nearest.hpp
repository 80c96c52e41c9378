// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// floor(log2 amax + 1/2) - emax: the power of two nearest to amax in the logarithm, so the
/// threshold is sqrt 2 (FBGEMM's rounding mode `nearest`, here without the error of a float32
/// log2). Inf or NaN gives 255; zero gives code 0.
MX_HD inline int nearest(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    const binade b = binade_of(in.amax_bits);
    const std::uint64_t significand = b.mantissa | 0x00800000u;
    const bool up = significand * significand >= std::uint64_t{1} << 47;
    return clamp_to_e8m0(b.exponent + (up ? 1 : 0) - in.emax);
}

}  // namespace mx::scale::rules
