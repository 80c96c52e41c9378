// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// floor of the exponent after 23 - m random bits (the top ones of `draw`) were added to the
/// mantissa of amax (FBGEMM's rounding mode `stochastic` for the shared exponent).
/// Inf or NaN gives 255, and so does a carry to 2^128; zero gives code 0.
MX_HD inline int stochastic(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    const std::uint32_t sum = in.amax_bits + (in.draw >> (9 + in.mantissa_bits));
    if (sum >= base::f32_infinity) return format::e8m0_nan;
    return clamp_to_e8m0(binade_of(sum).exponent - in.emax);
}

}  // namespace mx::scale::rules
