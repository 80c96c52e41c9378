// SPDX-License-Identifier: Apache-2.0
// Conversion of one float32 without a shared scale.
#pragma once

#include <cstdint>

#include "libmx/oracle/rounding.hpp"

namespace mx::oracle {

/// The code of `x` (any float32). Beyond the largest value, Inf included: the largest of the same
/// sign; without `saturate`, what rounds beyond becomes NaN (specials fn) or Inf (ieee). NaN gives
/// the positive NaN with all bits set; without NaN codes +max, in integers 0. A format without a
/// sign converts |x|.
unsigned cast(const value_list& list, float x, const rounding_choice& choice, std::uint32_t draw,
              bool saturate);

/// The E8M0 code of |x|: the smallest (or, with `toward_zero`, the largest) power of two not below
/// (not above) it, clamped to [2^-127, 2^127]; Inf gives 254 and NaN 255.
unsigned cast_to_e8m0(float x, bool toward_zero);

}  // namespace mx::oracle
