// SPDX-License-Identifier: Apache-2.0
// The element quantizer of microxcaling's PyTorch path, operation by operation
// (microsoft/microxcaling@7bc4195, mx/elemwise_ops.py: _quantize_elemwise_core). Every result is
// rounded to the tensor's dtype; log2 is rounded, too, which shows next to powers of two.
#pragma once

#include <cmath>
#include <limits>

#include "libmx/codec/narrow_float.hpp"
#include "libmx/format/element_params.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/scale/misrounded_log2.hpp"
#include "libmx/scale/rule_input.hpp"

namespace mx::codec {

namespace element_steps {

/// 2^e in float32; Inf from 2^128 on.
MX_HD inline float power_or_inf(int e) {
    return e > 127 ? std::numeric_limits<float>::infinity() : base::exact_pow2f(e);
}

/// Rounds to an integer: half away from zero, half to even, or toward zero.
template <typename Arithmetic>
MX_HD inline float to_integer(float x, format::rounding how) {
    const auto r = [](float v) { return Arithmetic::round(v); };
    const float magnitude = std::fabs(x);
    const float sign = x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
    if (how == format::rounding::zero) return sign * std::floor(magnitude);
    float rounded = std::floor(r(magnitude + 0.5f));
    if (how == format::rounding::rtne) {
        const float below = r(magnitude - 0.5f);
        const bool tie_above_even = std::fmod(below, 2.0f) == 0.0f;
        if (tie_above_even) rounded = r(rounded - 1.0f);
    }
    return sign * rounded;
}

}  // namespace element_steps

/// `y` (finite) rounded to the format and clamped to `largest`; the sum of 1/2 and of the value one
/// ulp below 1/2 rounds up to 1, and values whose log2 rounds to 128 become NaN. A zero gives +0.
template <typename Arithmetic>
MX_HD inline float microxcaling_element(const format::element_params& f, format::rounding how,
                                        scale::log2_format log2, float largest, float y) {
    const auto r = [](float v) { return Arithmetic::round(v); };
    const float mantissa_scale = base::exact_pow2f(f.mantissa_bits);
    float exponent_scale = 1.0f;
    if (f.floating) {
        // log2 of a zero is taken as that of 1.
        const std::uint32_t u = base::bits_of(y == 0.0f ? 1.0f : std::fabs(y));
        const int e = scale::floor_rounded_log2(log2, u, scale::binade_of(u).exponent);
        exponent_scale = element_steps::power_or_inf(e < f.emin ? f.emin : e);
    }
    const float scaled = r(r(y / exponent_scale) * mantissa_scale);
    const float integer = element_steps::to_integer<Arithmetic>(scaled, how);
    const float q = r(r(integer / mantissa_scale) * exponent_scale);
    return q > largest ? largest : q < -largest ? -largest : q;  // NaN stays
}

}  // namespace mx::codec
