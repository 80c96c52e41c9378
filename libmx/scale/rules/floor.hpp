// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// floor(log2 amax) - emax (OCP MX 1.0 section 6.3). Inf or NaN gives 255; zero gives code 0.
MX_HD inline int floor(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    const binade b = binade_of(in.amax_bits);
    return clamp_to_e8m0(in.real_emax ? floor_log2_over_max(b, in) : b.exponent - in.emax);
}

}  // namespace mx::scale::rules
