// SPDX-License-Identifier: Apache-2.0
// Arithmetic that rounds every result to a working format, as tensor libraries do it: float32 as
// it is, bfloat16 by rounding each float32 result.
#pragma once

#include <cstdint>

#include "libmx/base/bits.hpp"

namespace mx::codec {

struct float32_arithmetic {
    MX_HD static float round(float x) { return x; }
};

struct bfloat16_arithmetic {
    /// To nearest, ties to even; NaN stays NaN.
    MX_HD static float round(float x) {
        const std::uint32_t u = base::bits_of(x);
        if ((u & base::f32_magnitude_mask) > base::f32_infinity) return x;
        const std::uint32_t odd = (u >> 16) & 1u;
        return base::float_from_bits((u + 0x7fffu + odd) & 0xffff0000u);
    }
};

}  // namespace mx::codec
