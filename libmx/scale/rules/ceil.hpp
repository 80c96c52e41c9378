// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "libmx/scale/rule_input.hpp"
#include "libmx/scale/rules/rceil.hpp"

namespace mx::scale::rules {

/// ceil(log2 amax) - emax (Yang et al. eq. 3): one above floor for any non-zero mantissa.
/// Inf or NaN gives 255; zero gives code 0; beyond 2^127 (integers only) the scale saturates.
MX_HD inline int ceil(const rule_input& in) {
    if (in.amax_bits >= base::f32_infinity) return format::e8m0_nan;
    if (in.amax_bits == 0) return 0;
    if (in.real_emax) return rceil(in);
    const binade b = binade_of(in.amax_bits);
    return clamp_to_e8m0(b.exponent + (b.mantissa != 0 ? 1 : 0) - in.emax);
}

}  // namespace mx::scale::rules
