// SPDX-License-Identifier: Apache-2.0
// Conversion of one float32 to an element or scale format, without a shared scale.
#pragma once

#include <cstdint>

#include "libmx/format/encode.hpp"
#include "libmx/format/scale_formats.hpp"

namespace mx::format {

/// The code of float32 bits `x`.
/// saturate: values beyond the largest, including Inf, become the largest of the same sign;
/// otherwise NaN (E4M3) or Inf (E5M2). Formats without either always saturate.
/// NaN becomes the positive NaN code; +max in formats without NaN (as in CUDA's conversions), 0 in
/// integers. Unsigned formats convert the magnitude (UE4M3) or give 0 for negative numbers (UE5M3).
/// Source: PTX cvt.{rn,rz}.satfinite.
MX_HD inline std::uint32_t cast_code(const element_params& f, const rounding_mode& mode,
                                     std::uint32_t x, bool saturate, std::uint32_t draw) {
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (!f.has_sign) {
        const bool clamped = f.clamps_negative && x > base::f32_sign_mask;
        x = clamped && magnitude <= base::f32_infinity ? 0u : magnitude;
        if (x == 0) return 0;
    }
    const bool negative = (x & base::f32_sign_mask) != 0;
    if (magnitude > base::f32_infinity) {
        if (f.nan_code >= 0) return static_cast<std::uint32_t>(f.nan_code);
        return f.floating ? f.max_positive : 0u;
    }
    encoded e{};
    if (magnitude == base::f32_infinity) {
        const std::uint32_t limit = f.limit(negative);
        e = {limit, detail::far_beyond, true, negative};
    } else {
        e = encode_magnitude(f, mode, x, 0, draw);
    }
    // The code above the largest finite one is Inf in E5M2 and NaN in E4M3.
    const bool spills = !saturate && f.nan_code >= 0 && e.unbounded > f.max_positive;
    return with_sign(f, spills ? f.max_positive + 1u : e.magnitude, negative);
}

/// The E8M0 code of the magnitude of `x`: the next power of two up, or down with `toward_zero` (PTX
/// cvt.{rp,rz}.satfinite.ue8m0). Zero and values up to 2^-127 give 0, Inf gives 254 (the largest)
/// and NaN 255.
MX_HD inline std::uint32_t cast_e8m0(std::uint32_t x, bool toward_zero) {
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (magnitude > base::f32_infinity) return e8m0_nan;
    if (magnitude == base::f32_infinity) return e8m0_max;
    const std::uint32_t field = magnitude >> 23;
    const std::uint32_t mantissa = magnitude & base::f32_mantissa_mask;
    if (toward_zero) return field;
    const bool bump = field == 0 ? mantissa > 0x00400000u : mantissa != 0;
    const std::uint32_t code = field + (bump ? 1u : 0u);
    return code > e8m0_max ? e8m0_max : code;
}

}  // namespace mx::format
