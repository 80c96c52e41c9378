// SPDX-License-Identifier: Apache-2.0
// Conversion of one value to an element or scale format as a dialect does it: one body for host and
// device. What a conversion is made from: dialect_element.hpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "libmx/codec/dialects.hpp"
#include "libmx/codec/fbgemm_element.hpp"
#include "libmx/codec/ggml_ue4m3.hpp"
#include "libmx/codec/microxcaling_element.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/encode.hpp"

namespace mx::codec {

/// What a value became.
struct converted {
    int code;     ///< -1 where the result has no code (Inf kept in FP4, say)
    float value;  ///< the result as a number, with the sign of zero and of Inf; NaN as such
};

/// How values are converted.
struct conversion {
    const dialect* by;  ///< on a device, of a copy that lies there
    format::element_params element;
    format::rounding_mode mode;
    bool saturate = true;  ///< false: NaN (E4M3) or Inf (E5M2) beyond the largest value
    float value[256];      ///< decoded value of every code
};

namespace element_steps {

MX_HD inline converted from_code(const conversion& c, std::uint32_t code) {
    return {static_cast<int>(code), c.value[code]};
}

MX_HD inline converted without_code(float value) { return {-1, value}; }

MX_HD inline std::uint32_t signed_code(const conversion& c, std::uint32_t magnitude,
                                       bool negative) {
    return format::with_sign(c.element, magnitude, negative);
}

// A NaN of the format with the sign of the input: quiet in E5M2.
MX_HD inline std::uint32_t nan_code(const conversion& c, bool negative) {
    const bool has_inf = c.element.nan_code != static_cast<int>(c.element.max_positive) + 1;
    const std::uint32_t magnitude =
        has_inf ? c.element.max_positive + 3u : c.element.max_positive + 1u;
    return signed_code(c, magnitude, negative);
}

MX_HD inline converted convert_nan(const conversion& c, bool negative) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const bool has_nan = c.element.nan_code >= 0;
    switch (c.by->nan_value.value) {
        case nan_element::keep:
            return {c.element.nan_code, nan};
        case nan_element::zero:  // modelopt: its sign bit is 1 wherever sign(y) is 0
            return from_code(c,
                             signed_code(c, 0, c.by->sign_of_zero.value == zero_sign::input_minus));
        case nan_element::nan_or_zero:
            if (has_nan) return from_code(c, nan_code(c, negative));
            return from_code(c, signed_code(c, 0, !negative));
        case nan_element::nan_or_inner: {
            if (has_nan) break;
            const std::uint32_t one_and_a_half =
                (static_cast<std::uint32_t>(1 - c.element.emin) << c.element.mantissa_bits) |
                (1u << (c.element.mantissa_bits - 1));
            return from_code(c, signed_code(c, one_and_a_half, negative));
        }
        case nan_element::nan_or_max:
            break;
    }
    if (has_nan) return from_code(c, static_cast<std::uint32_t>(c.element.nan_code));
    return from_code(c, c.element.floating ? c.element.max_positive : 0u);
}

MX_HD inline converted convert_inf(const conversion& c, bool negative) {
    const float inf = std::numeric_limits<float>::infinity();
    const bool has_special = c.element.nan_code >= 0;
    if (c.by->inf_value.value == inf_element::keep) return without_code(negative ? -inf : inf);
    if (has_special && (!c.saturate || c.by->inf_value.value == inf_element::special)) {
        // Inf in E5M2, NaN in E4M3: the code above the largest finite one in both.
        return from_code(c, signed_code(c, c.element.max_positive + 1u, negative));
    }
    return from_code(c, signed_code(c, c.element.limit(negative), negative));
}

// The sign a zero result has, or nothing to say when it is the input's.
MX_HD inline bool negative_zero(const conversion& c, bool negative, bool zero_input) {
    switch (c.by->sign_of_zero.value) {
        case zero_sign::plus:
            return false;
        case zero_sign::input_minus:
            return negative || zero_input;
        case zero_sign::input_plus:
            return negative && !zero_input;
        case zero_sign::kept:
            break;
    }
    return negative;
}

// How a dialect rounds where it says something else by the name of a rounding.
MX_HD inline format::rounding_mode mode_of(const conversion& c) {
    format::rounding_mode mode = c.mode;
    mode.round_fraction = c.by->stochastic.value == stochastic_kind::rounded_delta;
    // Without mantissa bits the fraction 1/2 rounds to the even fraction 0.
    const bool fraction_ties = c.by->arithmetic.value == element_kind::fraction_even;
    if (fraction_ties && c.element.mantissa_bits == 0 && mode.how == format::rounding::rtne) {
        mode.how = format::rounding::ties_to_zero;
    }
    return mode;
}

MX_HD inline converted convert_as_fbgemm(const conversion& c, std::uint32_t x, std::uint32_t draw) {
    // 23 - m random bits below the kept mantissa; the conversion adds half an ulp on top.
    const bool random = c.mode.how == format::rounding::stochastic;
    if (random) x += draw >> (9 + c.element.mantissa_bits);
    const std::uint32_t code = fbgemm_code(c.element, x);
    return from_code(c, code);
}

MX_HD inline converted convert_exactly(const conversion& c, std::uint32_t x, std::uint32_t draw) {
    const bool negative = c.element.has_sign && (x & base::f32_sign_mask) != 0;
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    const std::uint32_t bits = negative ? x : magnitude;
    format::encoded e = format::encode_magnitude(c.element, mode_of(c), bits, 0, draw);
    if (magnitude == 0) e = {0, 0, false, negative};
    const bool beyond = e.unbounded > c.element.max_positive;
    const bool is_e4m3 = c.element.nan_code == static_cast<int>(c.element.max_positive) + 1;
    const bool nan_anyway = c.by->e4m3_overflow_is_nan.value && is_e4m3;
    if (c.element.nan_code >= 0 && beyond && (!c.saturate || nan_anyway)) {
        return from_code(c, signed_code(c, c.element.max_positive + 1u, negative));
    }
    if (e.magnitude != 0) return from_code(c, signed_code(c, e.magnitude, negative));
    const bool minus = negative_zero(c, negative, magnitude == 0) && c.element.has_sign;
    // Integers have no code of a negative zero, but dialects that compute in floats return one.
    return {static_cast<int>(signed_code(c, 0, minus)), minus ? -0.0f : 0.0f};
}

// The code of a value that a float computation produced; the value is one of the format. NaNs that
// arise have other bits on every kind of processor: here they are one.
MX_HD inline converted with_code_of(const conversion& c, float value) {
    if (std::isnan(value)) return {c.element.nan_code, std::numeric_limits<float>::quiet_NaN()};
    if (std::isinf(value)) return without_code(value);
    const std::uint32_t u = base::bits_of(value);
    const bool negative = (u & base::f32_sign_mask) != 0;
    const format::encoded e =
        format::encode_magnitude(c.element, {format::rounding::zero}, u, 0, 0);
    return {static_cast<int>(signed_code(c, e.magnitude, negative)), value};
}

}  // namespace element_steps

/// Converts the float32 bits `x`; `draw` is used by stochastic rounding only. In a block, `x` is
/// the element divided by the scale as the dialect divides.
MX_HD inline converted convert(const conversion& c, std::uint32_t x, std::uint32_t draw) {
    using namespace element_steps;
    if (!c.element.has_sign && c.by->two_level.value == two_level_kind::ggml) {
        return from_code(c, ggml_ue4m3(base::float_from_bits(x)));
    }
    if (c.by->arithmetic.value == element_kind::fbgemm) return convert_as_fbgemm(c, x, draw);
    const bool negative = c.element.has_sign && (x & base::f32_sign_mask) != 0;
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (magnitude > base::f32_infinity) return convert_nan(c, (x & base::f32_sign_mask) != 0);
    if (magnitude == base::f32_infinity) return convert_inf(c, negative);
    switch (c.by->arithmetic.value) {
        case element_kind::microxcaling:
            return with_code_of(c, microxcaling_element<float32_arithmetic>(
                                       c.element, c.mode.how, scale::log2_in_float32,
                                       c.value[c.element.max_positive], base::float_from_bits(x)));
        case element_kind::bfloat16:
            return with_code_of(c, microxcaling_element<bfloat16_arithmetic>(
                                       c.element, c.mode.how, scale::log2_in_bfloat16,
                                       c.value[c.element.max_positive], base::float_from_bits(x)));
        case element_kind::fbgemm:
        case element_kind::exact:
        case element_kind::fraction_even:
            break;
    }
    return convert_exactly(c, x, draw);
}

/// The E8M0 code of the float32 bits `x` (of either sign, converted by magnitude). Toward zero:
/// the power of two below instead of above. saturate=false: beyond 2^127 gives 255. The dialect has
/// such a conversion: see require_e8m0.
MX_HD inline int convert_e8m0(const dialect& by, std::uint32_t x, bool toward_zero, bool saturate) {
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    const bool above = magnitude > base::bits_of(0x1p127f);
    const auto exponent = static_cast<int>(magnitude >> 23);
    switch (by.e8m0.value) {
        case e8m0_cast::none:
            return format::e8m0_nan;
        case e8m0_cast::nearest: {
            const bool negative = (x & base::f32_sign_mask) != 0;
            if (negative || magnitude == 0 || magnitude >= base::f32_infinity) {
                return format::e8m0_nan;
            }
            // Halfway goes up, except between the two smallest powers.
            const std::uint32_t mantissa = magnitude & base::f32_mantissa_mask;
            const std::uint32_t half = 0x00400000u;
            return exponent + ((exponent == 0 ? mantissa > half : mantissa >= half) ? 1 : 0);
        }
        case e8m0_cast::up_inf_nan:
            if (magnitude == base::f32_infinity) return format::e8m0_nan;
            break;
        case e8m0_cast::up_nan:
            saturate = false;
            break;
        case e8m0_cast::up:
            break;
    }
    if (!saturate && magnitude == base::f32_infinity) return format::e8m0_nan;
    if (!saturate && above && !toward_zero) return format::e8m0_nan;
    return static_cast<int>(format::cast_e8m0(x, toward_zero));
}

}  // namespace mx::codec
