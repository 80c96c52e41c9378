// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// floor(log2 of amax rounded to the element's mantissa bits, ties up) - emax (Yang et al. eq. 4,
/// torchao EVEN). Only the carry into the next binade matters, and the candidate below a tie is
/// odd (all ones), so ties up is round-to-even. For integers the n-2 fraction bits are taken as
/// the precision; nothing published defines it.
/// Inf or NaN gives 255, and so does a finite amax that rounds to 2^128; zero gives code 0.
MX_HD inline int even(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    binade b = binade_of(in.amax_bits);
    const std::uint32_t half_step = 1u << (22 - in.mantissa_bits);
    const std::uint32_t rounded = b.mantissa + half_step;
    if (rounded >= 0x00800000u) {
        b = {b.exponent + 1, 0};
        if (b.exponent > 127) return format::e8m0_nan;
    } else {
        b.mantissa = rounded & ~(2 * half_step - 1);
    }
    return clamp_to_e8m0(in.real_emax ? floor_log2_over_max(b, in) : b.exponent - in.emax);
}

}  // namespace mx::scale::rules
