// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// floor, one higher when amax > 1.75 * 2^floor(log2 amax): the exponent bump of arXiv 2506.20752
/// as described (its code takes another maximum: dialect systems-scaling). The constant is that of
/// E4M3, E5M2 and E3M2, where the rule equals rceil, and is used for every format.
/// Inf or NaN gives 255; zero gives code 0.
MX_HD inline int floor_bump(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    const binade b = binade_of(in.amax_bits);
    constexpr std::uint32_t three_quarters = 0x00600000u;
    return clamp_to_e8m0(b.exponent + (b.mantissa > three_quarters ? 1 : 0) - in.emax);
}

}  // namespace mx::scale::rules
