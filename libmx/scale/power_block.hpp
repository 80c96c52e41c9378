// SPDX-License-Identifier: Apache-2.0
// One block under an E8M0 scale, without statistics: for the single header
// (cmake/mx_single_header.cmake), whose users have no library. Equal to quantize_block of plain
// recipes.
#pragma once

#include <cstdint>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/scale/rule_step.hpp"

namespace mx::scale {

/// Quantizes the `n` values `x` into `codes` and returns the E8M0 code of their scale. A NaN or Inf
/// gives scale code 255, and every code is what the format makes of a NaN. `draws`: 32 random bits
/// for each value under stochastic rounding, else null.
MX_HD inline int quantize_power_block(const format::element_params& f,
                                      const format::rounding_mode& mode, const rule_step& rule,
                                      const float* x, int n, std::uint8_t* codes,
                                      const std::uint32_t* draws = nullptr) {
    std::uint32_t amax = 0;
    for (int i = 0; i < n; ++i) {
        const std::uint32_t magnitude = base::bits_of(x[i]) & base::f32_magnitude_mask;
        amax = magnitude > amax ? magnitude : amax;
    }
    const int scale = scale_code(rule, amax);
    for (int i = 0; i < n; ++i) {
        const std::uint32_t draw = draws != nullptr ? draws[i] : 0u;
        if (scale == format::e8m0_nan) {
            codes[i] = static_cast<std::uint8_t>(
                format::cast_code(f, mode, base::bits_of(base::quiet_nan()), true, 0));
            continue;
        }
        const format::encoded e =
            format::encode_magnitude(f, mode, base::bits_of(x[i]), scale - format::e8m0_bias, draw);
        codes[i] = static_cast<std::uint8_t>(format::with_sign(f, e.magnitude, e.negative));
    }
    return scale;
}

/// The value of a code under the scale with this E8M0 code, rounded to float32 once; NaN for 255.
MX_HD inline float dequantize_code(const format::element_format& f, std::uint32_t code, int scale) {
    if (scale == format::e8m0_nan) return base::quiet_nan();
    return static_cast<float>(base::exact_pow2(scale - format::e8m0_bias) *
                              static_cast<double>(format::decode(f, code)));
}

}  // namespace mx::scale
