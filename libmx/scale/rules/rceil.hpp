// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/scale/rule_input.hpp"

namespace mx::scale::rules {

/// ceil(log2(amax / max)): the smallest power of two under which the block maximum does not
/// overflow. Exact; NVIDIA's float32 form differs on one input per format (numerics, section b).
/// Inf or NaN gives 255; zero gives code 0. Does not use `emax` and int_emax.
MX_HD inline int rceil(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    const binade b = binade_of(in.amax_bits);
    return clamp_to_e8m0(b.exponent - in.max_exponent + (b.mantissa > in.max_mantissa ? 1 : 0));
}

}  // namespace mx::scale::rules
