// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// floor(log2 of amax rounded to the element's mantissa bits, ties to even) - emax (Yang et al.
/// eq. 4, torchao EVEN). At the carry into the next binade the candidate below is all ones, hence
/// odd, so that tie always goes up. For integers the n-2 fraction bits are taken as the precision;
/// nothing published defines it.
/// Inf or NaN gives 255, and so does a finite amax that rounds to 2^128; zero gives code 0.
MX_HD inline int even(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    binade b = binade_of(in.amax_bits);
    const int dropped = 23 - in.mantissa_bits;
    const std::uint32_t significand = b.mantissa | 0x00800000u;
    const std::uint32_t odd = (significand >> dropped) & 1u;
    const std::uint32_t rounded = (significand + (1u << (dropped - 1)) - 1u + odd) >> dropped;
    if (rounded >> (in.mantissa_bits + 1) != 0) {
        b = {b.exponent + 1, 0};
        if (b.exponent > 127) return format::e8m0_nan;
    } else {
        b.mantissa = (rounded << dropped) & base::f32_mantissa_mask;
    }
    return clamp_to_e8m0(in.real_emax ? floor_log2_over_max(b, in) : b.exponent - in.emax);
}

}  // namespace mx::scale::rules
