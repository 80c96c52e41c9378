// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/dialects.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "libmx/oracle/number.hpp"
#include "libmx/oracle/rounding.hpp"

namespace mx::oracle {
namespace {

using draw_bits = std::uint32_t;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float f32_max = std::numeric_limits<float>::max();

block_scale no_scale(const recipe&, const value_list&, const block_maximum&, draw_bits) {
    return parts::nan_scale();
}

// E8M0 conversions.

int up_saturating(float x, bool toward_zero, bool saturate) {
    if (!saturate && !std::isnan(x)) {
        const bool beyond = std::fabs(x) > 0x1p127f;
        if (std::isinf(x) || (beyond && !toward_zero)) return 255;
    }
    return static_cast<int>(cast_to_e8m0(x, toward_zero));
}

int up_or_nan(float x, bool toward_zero, bool) { return up_saturating(x, toward_zero, false); }

int up_infinite_is_nan(float x, bool toward_zero, bool) {
    return std::isinf(x) ? 255 : up_saturating(x, toward_zero, true);
}

int to_nearest(float x, bool, bool) {
    if (!std::isfinite(x) || x == 0) return 255;
    const integer a = ticks_of(std::fabs(x));
    const int below = floor_log2(a, ticks_of_power(0));
    if (below < -127) return 0;
    const integer twice = 2 * a;
    const integer middle = 3 * ticks_of_power(below);
    const bool odd_code = (below + 127) % 2 != 0;
    const int code = below + 127 + (twice > middle || (twice == middle && odd_code) ? 1 : 0);
    return std::min(code, 255);
}

// microsoft/microxcaling.

template <const float_kind& kind>
block_scale microxcaling_scale(const recipe& r, const value_list& list, const block_maximum& m,
                               draw_bits) {
    return microxcaling::scale(kind, r, list, m);
}

template <const float_kind& kind>
element microxcaling_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                             draw_bits) {
    return microxcaling::convert(kind, r, list, x, s);
}

// Its C++ path works on bit fields and is exact. It does not support log2max, which counts as zero.
block_scale native_scale(const recipe& r, const value_list& list, const block_maximum& m,
                         draw_bits draw) {
    recipe whole = r;
    if (r.emax == integer_emax::log2max) whole.emax = integer_emax::zero;
    return parts::exact_scale(whole, list, m, draw);
}

// Zeros lose their sign.
element native_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                       draw_bits draw) {
    const float y = x / s.value;
    if (!std::isfinite(x) || std::isnan(y)) return parts::element_of(list, y);
    const element e = parts::rounded_quotient(r, list, x, s.value, draw);
    return e.q == 0 ? parts::element_of(list, 0.0f) : e;
}

// pytorch/ao@36027d8 to_mx.

block_scale torchao_scale(const recipe& r, const value_list& list, const block_maximum& m,
                          draw_bits draw) {
    if (r.rule != scale_rule::rceil) return parts::exact_scale(r, list, m, draw);
    if (m.nan) return parts::nan_scale();
    const float quotient = multiply(f32, m.amax, divide(f32, 1.0f, parts::largest(list)));
    const int code = up_saturating(quotient, false, false);
    return code == 255 ? parts::nan_scale() : parts::power(code - 127);
}

// FP4 and FP6 conversions treat NaN as a number: for the quiet NaN that a NaN scale gives, the
// result is the code of 1.5.
element torchao_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                        draw_bits draw) {
    if (std::isnan(x) || std::isnan(s.value)) {
        if (list.nan_code >= 0) return parts::element_of(list, NAN);
        return {parts::element_of(list, 1.5f).code, NAN};
    }
    return parts::saturating(r, list, x, s, draw);
}

// torchao 0.15.0 to_mx with RCEIL: ceil of a float32 log2. Elements are multiplied by 2^(127 -
// code), or by 1 if the code is 0.

block_scale torchao_0_15_scale(const recipe&, const value_list& list, const block_maximum& m,
                               draw_bits) {
    if (m.nan) return parts::nan_scale();
    if (std::isinf(m.amax)) return parts::power(127);
    return parts::power(parts::ceil_log2_f32(divide(f32, m.amax, parts::largest(list))));
}

element torchao_0_15_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                             draw_bits draw) {
    return torchao_element(r, list, x, s.code == 0 ? block_scale{127, 1} : s, draw);
}

// torchao 0.18.0 to_mx: RCEIL as in 0.15.0; the other rules take the exponent field of the maximum,
// also 255 of Inf, and divide by at least the smallest normal float32. A NaN block's scale is Inf
// there, so that its finite elements become zeros.

block_scale torchao_0_18_scale(const recipe& r, const value_list& list, const block_maximum& m,
                               draw_bits draw) {
    if (r.rule == scale_rule::rceil) return torchao_0_15_scale(r, list, m, draw);
    if (m.nan) return parts::nan_scale();
    std::uint32_t bits = std::bit_cast<std::uint32_t>(m.amax);
    if (r.rule == scale_rule::even) {
        bits = (bits + (1u << (22 - list.element->mantissa_bits))) & 0xff800000u;
    }
    const bool up = r.rule == scale_rule::ceil && (bits & 0x007fffffu) != 0;
    return parts::power(static_cast<int>(bits >> 23) - 127 + (up ? 1 : 0) - parts::emax(list));
}

element torchao_0_18_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                             draw_bits draw) {
    if (r.rule == scale_rule::rceil) {
        const block_scale used = s.code == 0 ? parts::power(0) : s;
        return torchao_element(r, list, x, used, draw);
    }
    if (std::isnan(s.value) && std::isfinite(x)) {
        return {parts::element_of(list, std::copysign(0.0f, x)).code, NAN};
    }
    return torchao_element(r, list, x, s.code == 0 ? parts::power(-126) : s, draw);
}

// NVIDIA/TransformerEngine@d0067d0 MXFP8: fmaxf ignores NaN, and the maximum is limited to finite
// values.

block_scale te_scale(const recipe&, const value_list& list, const block_maximum& m, draw_bits) {
    const float amax = std::min(m.amax, f32_max);
    const float quotient = multiply(f32, amax, divide(f32, 1.0f, parts::largest(list)));
    return parts::power(up_saturating(quotient, false, true) - 127);
}

// CUDA headers: the quotient is converted to E8M0, rounding up and saturating.
block_scale nvidia_scale(const recipe&, const value_list& list, const block_maximum& m, draw_bits) {
    if (m.nan) return parts::nan_scale();
    const float quotient = divide(f32, m.amax, parts::largest(list));
    return parts::power(up_saturating(quotient, false, true) - 127);
}

// ggml-org/llama.cpp quantize_row_mxfp4_ref: the exponent is cast to uint8_t, which is undefined
// out of range; in practice the low byte results.

block_scale ggml_scale(const recipe&, const value_list&, const block_maximum& m, draw_bits) {
    if (m.amax == 0) return {0, power_of_two_in(f32, -127)};
    const int code = parts::floor_log2_f32(std::min(m.amax, f32_max)) - 2 + 127;
    const int low_byte = (code % 256 + 256) % 256;
    if (low_byte == 255) return parts::nan_scale();
    return parts::power(low_byte - 127);
}

// The first code whose float32 distance from x is smallest; both zeros are +0.
element ggml_element(const recipe&, const value_list& list, float x, const block_scale& s,
                     draw_bits) {
    constexpr float table[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    // With Inf in a block the scale is undefined; the largest float32 replaces Inf.
    const float given = std::isinf(x) ? std::copysign(f32_max, x) : x;
    int best = 0;
    float least = infinity;
    for (int code = 0; code < 16; ++code) {
        const float there = multiply(f32, table[code], s.value);
        const float distance = std::fabs(subtract(f32, there, given));
        if (distance < least) {
            least = distance;
            best = code;
        }
    }
    return parts::element_of(list, table[best]);
}

// NVIDIA/TensorRT-Model-Optimizer@5a4242f MXFP4QTensor.quantize.

block_scale modelopt_scale(const recipe&, const value_list&, const block_maximum& m, draw_bits) {
    // A NaN or infinite exponent becomes zero when it is cast to uint8; see modelopt_element.
    if (m.nan || std::isinf(m.amax)) return {0, infinity};
    const float log2 = log2_in(f32, divide(f32, m.amax, 6.0f));
    return parts::power(static_cast<int>(std::ceil(std::max(log2, -127.0f))));
}

// sign_bit = (2 - sign(x)) // 2 is also 1 for zero, and for NaN, whose sign is 0 in PyTorch.
element modelopt_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                         draw_bits draw) {
    const float y = divide(f32, x, s.value);
    if (std::isnan(y) || y == 0) return parts::element_of(list, -0.0f);
    if (std::isinf(y)) return parts::element_of(list, std::copysign(6.0f, y));
    return parts::rounded_quotient(r, list, y, 1.0f, draw);
}

// amd/Quark@1d27b55 fake_quantize_mx: scales stay float32.

block_scale quark_scale(const recipe& r, const value_list& list, const block_maximum& m,
                        draw_bits) {
    if (m.nan) return {-1, std::numeric_limits<float>::quiet_NaN()};
    if (std::isinf(m.amax))
        return {-1, infinity};  // for all rules except even; our choice for even
    const int emax = parts::emax(list);
    if (r.rule == scale_rule::even) {
        // Only the exponent field remains: 0 means zero and 255 means Inf; their log2 is infinite
        // and then clamped.
        const std::uint32_t half = 1u << (22 - list.element->mantissa_bits);
        const std::uint32_t field = (std::bit_cast<std::uint32_t>(m.amax) + half) >> 23;
        if (field == 0 || field == 255) return {-1, parts::power(field == 0 ? -127 : 127).value};
        return {-1, parts::power(static_cast<int>(field) - 127 - emax).value};
    }
    int exponent = 0;
    if (r.rule == scale_rule::floor) {
        exponent = parts::floor_log2_f32(m.amax) - emax;
    } else if (r.rule == scale_rule::ceil) {
        exponent = parts::ceil_log2_f32(m.amax) - emax;
    } else {
        const float all_ones =
            std::ldexp(2.0f - std::ldexp(1.0f, -list.element->mantissa_bits), emax);
        exponent = parts::ceil_log2_f32(divide(f32, m.amax, all_ones));
    }
    const float scale = power_of_two_in(f32, exponent);
    return {-1, scale == 0 ? std::numeric_limits<float>::epsilon() : scale};
}

element quark_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                      draw_bits draw) {
    const float y = divide(f32, x, s.value);
    if (std::isinf(s.value)) return parts::element_of(list, NAN);  // 0 * Inf, or Inf / Inf
    if (!std::isfinite(y)) return parts::element_of(list, y);
    const element e = parts::rounded_quotient(r, list, y, 1.0f, draw);
    return e.q == 0 ? parts::element_of(list, 0.0f) : e;
}

// vllm-project/compressed-tensors@ac8e2ba generate_mx_scales: even with one mantissa bit. The code
// is a float there; values below the range count as 0 here, and infinite ones as 255.
block_scale compressed_tensors_scale(const recipe&, const value_list& list, const block_maximum& m,
                                     draw_bits) {
    if (m.nan || std::isinf(m.amax)) return parts::nan_scale();
    const std::uint32_t raised = std::bit_cast<std::uint32_t>(m.amax) + (1u << 21);
    const int field = static_cast<int>(raised >> 23);
    if (field == 255) return parts::nan_scale();
    return parts::power(field == 0 ? -127 : field - 127 - parts::emax(list));
}

// thu-ml/TetraJet-MXFP4Training@bbe9bd6, MXScale=1.

block_scale tetrajet_scale(const recipe&, const value_list& list, const block_maximum& m,
                           draw_bits) {
    if (m.nan || std::isinf(m.amax)) return parts::nan_scale();
    const float amax = m.amax == 0 ? 1e-8f : m.amax;
    const float range = 2 * parts::largest(list);
    return parts::power(parts::ceil_log2_f32(divide(f32, multiply(f32, 2.0f, amax), range)));
}

// Rounds the fraction above the leading power of two to half-even. Without fraction bits 0 is the
// only even fraction, so ties round down.
element tetrajet_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                         draw_bits draw) {
    if (!std::isfinite(x) || std::isnan(s.value)) return parts::saturating(r, list, x, s, draw);
    const float y = divide(f32, x, s.value);
    if (y == 0) return parts::element_of(list, 0.0f);
    recipe half_even = r;
    if (r.round.how == format::rounding::rtne && list.element->mantissa_bits == 0) {
        half_even.round.how = format::rounding::ties_to_zero;
    }
    return parts::rounded_quotient(half_even, list, y, 1.0f, draw);
}

// HIP OCP header: a value that rounds beyond the largest E4M3 value becomes NaN.
element hip_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                    draw_bits draw) {
    const bool e4m3 = list.element->special == format::specials::fn;
    if (e4m3 && std::isfinite(x) && std::isfinite(s.value)) {
        const rounded q =
            round_to(list, ticks_of(x), ticks_of(s.value), std::signbit(x), r.round, draw);
        if (q.clamped) return {list.nan_code + (std::signbit(x) ? 128 : 0), NAN};
    }
    return parts::saturating(r, list, x, s, draw);
}

element gfloat_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                       draw_bits draw) {
    if (std::isnan(x)) return parts::element_of(list, x);
    recipe rounded_fraction = r;
    rounded_fraction.round.round_fraction = true;
    return parts::saturating(rounded_fraction, list, x, s, draw);
}

// jax-ml/ml_dtypes@b793a6e: with saturation, Inf still becomes NaN (E4M3) or Inf (E5M2).
element ml_dtypes_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                          draw_bits draw) {
    const bool has_specials = list.nan_code >= 0;
    if (std::isnan(x)) {
        if (has_specials) return parts::element_of(list, NAN);
        return parts::element_of(list, std::signbit(x) ? 0.0f : -0.0f);
    }
    if (std::isinf(x) && has_specials) {
        return parts::element_of(list, list.infinity_code >= 0 ? x : NAN);
    }
    return parts::saturating(r, list, x, s, draw);
}

// AMD-AGI/ALTO@74e251d: values beyond the largest UE5M3, and Inf of either sign, become NaN;
// negative numbers become 0. Elements as in CUDA's headers.
element alto_element(const recipe& r, const value_list& list, float x, const block_scale& s,
                     draw_bits draw) {
    if (!list.element->clamps_negative) return parts::saturating(r, list, x, s, draw);
    if (std::isinf(x) || x > parts::largest(list)) return parts::element_of(list, NAN);
    return x < 0 ? parts::element_of(list, 0.0f) : parts::saturating(r, list, x, s, draw);
}

// KempnerInstitute/systems-scaling@99d244a: as microxcaling, plus the bump in bumped_columns.

constexpr std::array list_of_dialects{
    dialect{"ocp", true, parts::exact_scale, parts::saturating, up_saturating},
    dialect{"microxcaling", true, microxcaling_scale<f32>, microxcaling_element<f32>, nullptr},
    dialect{"microxcaling-bf16", true, microxcaling_scale<bf16>, microxcaling_element<bf16>,
            nullptr},
    dialect{"microxcaling-native", true, native_scale, native_element, nullptr},
    dialect{"torchao", true, torchao_scale, torchao_element, up_or_nan, convention::torchao},
    dialect{"torchao@0.18", true, torchao_0_18_scale, torchao_0_18_element, nullptr,
            convention::torchao},
    dialect{"torchao@0.15", true, torchao_0_15_scale, torchao_0_15_element, nullptr,
            convention::torchao_divides},
    dialect{"te", true, te_scale, parts::saturating, up_saturating, convention::te},
    dialect{"nvidia", true, nvidia_scale, parts::saturating, up_saturating},
    dialect{"fbgemm", true, fbgemm::scale, fbgemm::convert, nullptr},
    dialect{"ggml", true, ggml_scale, ggml_element, nullptr, convention::ggml},
    dialect{"modelopt", true, modelopt_scale, modelopt_element, nullptr, convention::modelopt},
    dialect{"quark", true, quark_scale, quark_element, nullptr, convention::quark},
    dialect{"compressed-tensors", true, compressed_tensors_scale, parts::saturating, nullptr,
            convention::compressed_tensors},
    dialect{"tetrajet", true, tetrajet_scale, tetrajet_element, nullptr, convention::exact, true},
    dialect{"amd-hip", true, parts::exact_scale, hip_element, nullptr},
    dialect{"systems-scaling", true, microxcaling_scale<f32>, microxcaling_element<f32>, nullptr},
    dialect{"gfloat", false, no_scale, gfloat_element, nullptr},
    dialect{"ml_dtypes", false, no_scale, ml_dtypes_element, to_nearest},
    dialect{"alto", true, no_scale, alto_element, nullptr, convention::alto},
    dialect{"cutlass", false, no_scale, parts::saturating, up_infinite_is_nan},
};

}  // namespace

std::span<const dialect> dialects() { return list_of_dialects; }

const dialect* find_dialect(std::string_view name) {
    for (const dialect& d : list_of_dialects) {
        if (d.name == name) return &d;
    }
    return nullptr;
}

value_list list_values(const dialect& by, const format::element_format& f, bool full_range) {
    static const format::element_format e4m3_to_480 = [] {
        format::element_format row = *format::find_element_format("e4m3");
        row.special = format::specials::none;
        return row;
    }();
    const bool further = by.e4m3_reaches_480 && f.special == format::specials::fn;
    return list_values(further ? e4m3_to_480 : f, full_range);
}

std::vector<bool> bumped_columns(std::span<const float> row, std::size_t cols) {
    std::vector<bool> bumped;
    for (std::size_t c = 0; c < std::min(cols, row.size()); ++c) {
        float largest = 0;
        for (std::size_t i = c; i < row.size(); i += cols) {
            if (std::isnan(row[i])) largest = row[i];
            if (!std::isnan(largest)) largest = std::max(largest, std::fabs(row[i]));
        }
        if (!std::isfinite(largest) || largest == 0) {
            bumped.push_back(false);
            continue;
        }
        const float power = power_of_two_in(f32, parts::floor_log2_f32(largest));
        bumped.push_back(largest > multiply(f32, 1.75f, power));
    }
    return bumped;
}

}  // namespace mx::oracle
