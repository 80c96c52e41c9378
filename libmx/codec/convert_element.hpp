// SPDX-License-Identifier: Apache-2.0
// Converts one value to an element or scale format as a dialect does; for host and device.
// conversion_of makes the parameters.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/codec/dialects.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/element_formats.hpp"
#include "libmx/format/element_params.hpp"
#include "libmx/format/encode.hpp"
#include "libmx/format/roundings.hpp"
#include "libmx/scale/misrounded_log2.hpp"
#include "libmx/scale/rule_step.hpp"

namespace mx::codec {

/// A float32 result as a working format holds it, the way tensor libraries compute: float32 as it
/// is, or rounded to bfloat16.
template <bool narrow>
MX_HD inline float rounded_if(float x) {
    return narrow ? base::rounded_to_bf16(x) : x;
}

// float32 to UE4M3 as ggml converts block scales, for host and device.

/// float32 to UE4M3 as ggml does it: halves go up, values that would round to 256 and beyond become
/// 448 and subnormals end at 7 (ggml-org/llama.cpp@0096646, ggml_fp32_to_ue4m3).
MX_HD inline std::uint8_t ggml_ue4m3(float x) {
    if (!(x > 0)) return 0;
    const std::uint32_t bits = base::bits_of(x < 448.0f ? x : 448.0f);
    const int field = static_cast<int>(bits >> 23) - 127 + 7;
    if (field <= 0) {
        const float halves_up = base::float_from_bits(bits) * 512.0f + 0.5f;
        const int quanta = static_cast<int>(halves_up);
        return static_cast<std::uint8_t>(quanta < 7 ? quanta : 7);
    }
    // Adds half of the last place; a carry propagates into the exponent.
    const int code = (field << 3) + static_cast<int>(((bits >> 19 & 15u) + 1) >> 1);
    return static_cast<std::uint8_t>(code >= 15 << 3 ? 0x7e : code);
}

/// The bits of float32 to UE5M3 as Quark's CPU routine does it, by magnitude: from 2^16 on the
/// exponent field stays 31 and the mantissa is that of the rounded number, also for Inf and NaN
/// (amd-quark 0.13). Its quantize-dequantize clamps to [0, 114688] first (`clamp`), which a NaN
/// passes.
MX_HD inline std::uint8_t quark_ue5m3(const format::element_params& f, std::uint32_t x,
                                      bool clamp) {
    std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (clamp && magnitude <= base::f32_infinity) {
        if ((x & base::f32_sign_mask) != 0) return 0;
        if (magnitude > base::bits_of(114688.0f)) return 0xfe;
    }
    if (magnitude < base::bits_of(0x1p16f)) {
        return static_cast<std::uint8_t>(
            format::encode_magnitude(f, {}, magnitude, 0, 0).magnitude);
    }
    magnitude += 0x0007ffffu + (magnitude >> 20 & 1u);
    return static_cast<std::uint8_t>(0xf8u | (magnitude >> 20 & 7u));
}

// The element conversion of FBGEMM's CPU reference for MX4, step by step in its integer types
// (pytorch/FBGEMM@71d6f8b, py_quantize_mx4). It rounds half away from zero, with three quirks: in
// E3M0 the binade below the smallest value flushes to zero, since the test for a carry is that of
// one mantissa bit; shifts of 32 and more, which tiny values need, keep their low five bits (what
// x86 does; undefined in C), so that a few of them become 0.5 or 2; and exponents live in 8 bits.

/// The code of the float32 bits `y`, any value, in E2M1 or E3M0.
MX_HD inline std::uint32_t fbgemm_code(const format::element_params& f, std::uint32_t y) {
    const int exponent_bits = f.bits - 1 - f.mantissa_bits;
    const int kept = f.mantissa_bits + 1;  // with the implicit one
    const int bias = 1 - f.emin;
    const auto field = static_cast<int>(y >> 23 & 0xffu);
    const bool subnormal = field == 0;
    auto exponent = static_cast<std::int8_t>(field - 127 + bias);
    auto below = static_cast<std::int8_t>(exponent <= 0 ? 1 - exponent : 0);
    if (below > 24) below = 24;

    const std::uint32_t trailing = y & base::f32_mantissa_mask;
    const std::uint32_t significand = subnormal ? trailing : trailing + 0x00800000u;
    const int shift = (subnormal ? 23 : 24) + below - kept - 1;
    auto mantissa = static_cast<std::int8_t>(significand >> (shift & 31));
    mantissa = static_cast<std::int8_t>(static_cast<std::int8_t>(mantissa + 1) >> 1);

    const bool carry = mantissa > (1 << kept) - 1;
    if (carry && !subnormal) mantissa = static_cast<std::int8_t>(mantissa >> 1);
    if (exponent <= 0 && mantissa == 2) exponent = 1;
    int fraction = mantissa & ((1 << (kept - 1)) - 1);
    const auto raised = static_cast<std::int8_t>(exponent + (carry ? 1 : 0));
    const int largest = (1 << exponent_bits) - 1;
    if (raised > largest) fraction = 1;
    const int clamped = raised < 0 ? 0 : raised > largest ? largest : raised;
    const auto code = static_cast<std::uint32_t>(clamped << (kept - 1) | fraction);
    return code | (y >> 31) << (f.bits - 1);
}

// The element quantizer of microxcaling's PyTorch path, operation by operation
// (microsoft/microxcaling@7bc4195, mx/elemwise_ops.py: _quantize_elemwise_core). Every result is
// rounded to the tensor's dtype; log2 is rounded, too, which shows next to powers of two.

namespace element_steps {

/// 2^e in float32; Inf from 2^128 on.
MX_HD inline float power_or_inf(int e) {
    return e > 127 ? std::numeric_limits<float>::infinity() : base::exact_pow2f(e);
}

/// Rounds to an integer: half away from zero, half to even, or toward zero.
template <bool narrow>
MX_HD inline float to_integer(float x, format::rounding how) {
    const auto r = [](float v) { return rounded_if<narrow>(v); };
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
template <bool narrow>
MX_HD inline float microxcaling_element(const format::element_params& f, format::rounding how,
                                        float largest, float y) {
    const scale::log2_format log2 = narrow ? scale::log2_in_bfloat16 : scale::log2_in_float32;
    const auto r = [](float v) { return rounded_if<narrow>(v); };
    const float mantissa_scale = base::exact_pow2f(f.mantissa_bits);
    float exponent_scale = 1.0f;
    if (f.floating) {
        // log2 of a zero is taken as that of 1.
        const std::uint32_t u = base::bits_of(y == 0.0f ? 1.0f : std::fabs(y));
        const int e = scale::floor_rounded_log2(log2, u, scale::binade_of(u).exponent);
        exponent_scale = element_steps::power_or_inf(e < f.emin ? f.emin : e);
    }
    const float scaled = r(r(y / exponent_scale) * mantissa_scale);
    const float integer = element_steps::to_integer<narrow>(scaled, how);
    const float q = r(r(integer / mantissa_scale) * exponent_scale);
    return q > largest ? largest : q < -largest ? -largest : q;  // NaN stays
}

/// The result of a conversion.
struct converted {
    int code;     ///< -1 where the result has no code (Inf kept in FP4, say)
    float value;  ///< the result as a number, with the sign of zero and of Inf; NaN as such
};

/// The parameters of a conversion.
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

// The rounding of a dialect that deviates from the name of the rounding.
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
    if (!c.element.has_sign) {
        const two_level_kind convention = c.by->two_level.value;
        if (c.element.clamps_negative && convention == two_level_kind::quark) {
            return from_code(c, quark_ue5m3(c.element, x, c.saturate));
        }
        const std::uint32_t size = x & base::f32_magnitude_mask;
        if (c.element.clamps_negative && convention == two_level_kind::alto) {
            const bool negative = size < base::f32_infinity && x != size;
            if (!negative && size > base::bits_of(c.value[c.element.max_positive])) {
                return from_code(c, static_cast<std::uint32_t>(c.element.nan_code));
            }
        }
        if (c.element.clamps_negative && x != size && size <= base::f32_infinity) {
            return from_code(c, 0);
        }
        if (!c.element.clamps_negative && convention == two_level_kind::ggml) {
            return from_code(c, ggml_ue4m3(base::float_from_bits(x)));
        }
    }
    if (c.by->arithmetic.value == element_kind::fbgemm) return convert_as_fbgemm(c, x, draw);
    const bool negative = c.element.has_sign && (x & base::f32_sign_mask) != 0;
    const std::uint32_t magnitude = x & base::f32_magnitude_mask;
    if (magnitude > base::f32_infinity) return convert_nan(c, (x & base::f32_sign_mask) != 0);
    if (magnitude == base::f32_infinity) return convert_inf(c, negative);
    const float largest = c.value[c.element.max_positive];
    const float y = base::float_from_bits(x);
    switch (c.by->arithmetic.value) {
        case element_kind::microxcaling:
            return with_code_of(c, microxcaling_element<false>(c.element, c.mode.how, largest, y));
        case element_kind::bfloat16:
            return with_code_of(c, microxcaling_element<true>(c.element, c.mode.how, largest, y));
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

// Which conversions of single values a dialect has, and their parameters.

/// The conversion to `f` (a row of the element formats, or the number of a scale format) under a
/// dialect; throws base::error (usage) when the dialect lacks the format or the rounding.
/// `full_range`: integers use the code -2^(n-1).
conversion conversion_of(const dialect& by, const format::element_format& f,
                         const format::rounding_mode& mode, bool saturate, bool full_range);

/// Throws base::error (usage) if the dialect has no conversion to E8M0.
void require_e8m0(const dialect& by);

// Conversion of a value without a block, to a number or to a scale's power of two: one body for
// host and device.

/// To E8M0 `number` has no element: its dialect, rounding (zero: down, else up), saturation and
/// values count.
struct element_cast {
    conversion number;
    bool power_of_two = false;
};

/// The cast to E8M0; throws base::error (usage) when the dialect has none.
element_cast cast_to_e8m0(const dialect& by, format::rounding how, bool saturate);

/// Casts the float32 bits `x`; `draw` is used by stochastic rounding only.
MX_HD inline converted cast_element(const element_cast& c, std::uint32_t x, std::uint32_t draw) {
    if (!c.power_of_two) return convert(c.number, x, draw);
    const bool toward_zero = c.number.mode.how == format::rounding::zero;
    const int code = convert_e8m0(*c.number.by, x, toward_zero, c.number.saturate);
    return {code, c.number.value[code]};
}

}  // namespace mx::codec
