// SPDX-License-Identifier: Apache-2.0
#include "libmx/oracle/dialects.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libmx/format/scale_formats.hpp"
#include "libmx/oracle/number.hpp"

namespace mx::oracle {
namespace {

namespace mp = boost::multiprecision;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float largest_f32 = std::numeric_limits<float>::max();
constexpr float smallest_f32 = std::numeric_limits<float>::denorm_min();

const value_list& values_of_scales(std::string_view name) {
    static const value_list ue4m3 = list_values(format::find_scale_format("ue4m3")->number, false);
    static const value_list ue5m3 = list_values(format::find_scale_format("ue5m3")->number, false);
    static const value_list with_inf =
        list_values(format::find_scale_format("ue5m3_inf")->number, false);
    return name == "ue5m3" ? ue5m3 : name == "ue5m3_inf" ? with_inf : ue4m3;
}

const value_list& scales_of(const recipe& r) { return values_of_scales(r.scale_format->name); }

bool under_ue5m3(const recipe& r) { return r.scale_format->name == "ue5m3"; }

convention convention_of(const recipe& r) {
    return r.by == nullptr ? convention::exact : r.by->float_scale;
}

bool has_tensor_scale(const recipe& r) {
    return r.rule == scale_rule::two_level || r.rule == scale_rule::search_two_level;
}

// The largest block scale times the largest element: 448 * 6, or 256 * 6 for four-over-six, which
// needs scales up to 1.5 times as large. UE5M3: 114688 and 65536; with Inf 61440 and 32768.
float tensor_range(const recipe& r, const value_list& list) {
    const bool room = r.select != selection::none && !r.full_bound;
    float most = room ? 256.0f : 448.0f;
    if (under_ue5m3(r)) most = room ? 65536.0f : 114688.0f;
    if (r.scale_format->name == "ue5m3_inf") most = room ? 32768.0f : 61440.0f;
    return most * parts::largest(list);
}

// Transformer Engine, as in its reference quantizer.
bool by_te_reference(const recipe& r) {
    return convention_of(r) == convention::te &&
           (r.outer_rows != 0 || r.select != selection::none || under_ue5m3(r));
}

// The tensor factor as stored and as applied to values.
struct tensor_factor {
    float stored;
    float decode;
};

tensor_factor tensor_scale(const recipe& r, const value_list& list) {
    if (!has_tensor_scale(r)) return {1, 1};
    if (r.given != 0) {
        const convention c = convention_of(r);
        const bool inverse = c == convention::te || c == convention::compressed_tensors;
        return {r.given, inverse ? divide(f32, 1, r.given) : r.given};
    }
    const float amax = r.tensor_amax;
    const float range = tensor_range(r, list);
    switch (convention_of(r)) {
        case convention::exact: {
            if (amax == 0) return {1, 1};
            const float g = std::max(divide(f32, amax, range), smallest_f32);
            return {g, g};
        }
        case convention::te:
        case convention::compressed_tensors: {
            float stored = divide(f32, range, amax);
            const bool te = convention_of(r) == convention::te;
            if (amax == 0) stored = 1;
            if (std::isinf(stored)) stored = te ? largest_f32 : 1;
            return {stored, divide(f32, 1, stored)};
        }
        case convention::alto: {
            const float g = std::max(divide(f32, amax, range), 1e-30f);
            return {g, g};
        }
        case convention::torchao:
        case convention::torchao_divides:
        case convention::modelopt:
        case convention::ggml:
        case convention::quark:
            break;
    }
    const float g = divide(f32, amax, range);
    return {g, g};
}

float scale_value(const recipe& r, int code) {
    return static_cast<float>(decode_scale(*r.scale_format, static_cast<unsigned>(code)).value());
}

struct small_scale {
    int code;
    float value;
};

// numerator / denominator in UE4M3 (or UE5M3), to nearest even; beyond the largest value, that
// value, or NaN beyond the tie.
small_scale to_scale(const value_list& list, const integer& numerator, const integer& denominator,
                     bool saturate) {
    const rounded q = round_to(list, numerator, denominator, false, {}, 0);
    if (q.clamped && !saturate) return {list.nan_code, nan_value};
    return {static_cast<int>(q.code),
            std::ldexp(static_cast<float>(q.quanta), list.quantum_exponent)};
}

small_scale to_scale(const value_list& list, float x, bool saturate = true) {
    if (std::isnan(x)) return {list.nan_code, x};
    if (std::isinf(x)) {
        return saturate ? to_scale(list, parts::largest(list))
                        : small_scale{list.nan_code, nan_value};
    }
    return to_scale(list, ticks_of(x), ticks_of_power(0), saturate);
}

small_scale to_ue4m3(float x, bool saturate = true) {
    return to_scale(values_of_scales("ue4m3"), x, saturate);
}

// ggml_fp32_to_ue4m3: rounds half away at four significant bits and treats an exponent field of 15
// as overflow; subnormals by a float32 addition, at most 7.
small_scale ggml_ue4m3(float x) {
    if (!(x > 0)) return {0, 0};
    if (x >= 256) return to_ue4m3(448.0f);
    if (x < 0x1p-6f) {
        const float n = std::floor(add(f32, multiply(f32, x, 512), 0.5f));
        return to_ue4m3(std::ldexp(std::min(n, 7.0f), -9));
    }
    const rounding_choice away{format::rounding::away, {}, 32};
    const value_list& list = values_of_scales("ue4m3");
    const rounded q = round_to(list, ticks_of(x), ticks_of_power(0), false, away, 0);
    const float value = std::ldexp(static_cast<float>(q.quanta), list.quantum_exponent);
    return to_ue4m3(value >= 256 ? 448.0f : value);
}

float_scale under(const recipe& r, const value_list& list, float amax, float target) {
    const tensor_factor t = tensor_scale(r, list);
    const float g = t.decode;
    const value_list& scales = scales_of(r);
    const auto answer = [&](const small_scale& s, float factor) {
        return float_scale{s.code, s.value, g, factor};
    };
    switch (convention_of(r)) {
        case convention::exact: {
            if (!std::isfinite(amax)) return answer(to_scale(scales, nan_value), nan_value);
            return answer(to_scale(scales, ticks_of(amax) * ticks_of_power(0),
                                   ticks_of(target) * ticks_of(g), true),
                          0);
        }
        case convention::torchao:
        case convention::torchao_divides: {
            float s = divide(f32, amax, 6);
            float reciprocal = 1;
            if (has_tensor_scale(r)) {
                s = divide(f32, s, g);
                reciprocal = divide(f32, 1, g);
            }
            if (s < 0x1p-6f) s = 0x1p-6f;
            if (s > 448) s = 448;
            const small_scale b = to_ue4m3(s);
            if (convention_of(r) == convention::torchao_divides) {
                return answer(b, has_tensor_scale(r) ? multiply(f32, g, b.value) : b.value);
            }
            return answer(b, divide(f32, reciprocal, b.value));
        }
        case convention::te: {
            const float sixth = divide(f32, 1, 6);
            const float encode = has_tensor_scale(r) ? multiply(f32, t.stored, sixth) : sixth;
            float s = multiply(f32, amax, encode);
            if (r.select != selection::none) {
                s = multiply(f32, divide(f32, amax, 6), t.stored);
                if (target == 4) s = multiply(f32, 1.5f, s);
            }
            const small_scale b = to_scale(scales, s);
            if (b.value == 0) return answer(b, by_te_reference(r) ? largest_f32 : 0);
            const float decode = multiply(f32, b.value, divide(f32, 1, t.stored));
            return answer(b, std::min(divide(f32, 1, decode), largest_f32));
        }
        case convention::ggml: {
            const small_scale b = ggml_ue4m3(divide(f32, amax, 6));
            return answer(b, b.value);
        }
        case convention::modelopt: {
            small_scale b = to_ue4m3(divide(f32, amax, multiply(f32, 6, g)), false);
            if (b.value == 0) b = to_ue4m3(1.0f);
            return answer(b, multiply(f32, b.value, g));
        }
        case convention::compressed_tensors: {
            small_scale b = to_ue4m3(multiply(f32, t.stored, divide(f32, amax, 6)));
            if (b.value == 0) b = to_ue4m3(0.125f);
            return answer(b, divide(f32, b.value, t.stored));
        }
        case convention::quark: {
            if (std::isnan(amax)) return answer({0xfc, 98304.0f}, 98304.0f);
            small_scale b = to_scale(scales, divide(f32, amax, 6));
            if (b.value == 0) b.value = std::numeric_limits<float>::epsilon();
            return answer(b, b.value);
        }
        case convention::alto: {
            const float least = under_ue5m3(r) ? 0x1p-17f : 0x1p-6f;
            float s = divide(f32, has_tensor_scale(r) ? divide(f32, amax, g) : amax, 6);
            if (std::isnan(s) || s < least) s = least;
            const small_scale b = to_scale(scales, s);
            return answer(b, multiply(f32, b.value, g));
        }
    }
    return answer({255, nan_value}, nan_value);
}

// FP8 block scaling.

float exact_f32_scale(const recipe& r, const value_list& list, float amax) {
    if (!std::isfinite(amax)) return nan_value;
    if (amax == 0) return 1;
    const float largest = parts::largest(list);
    if (r.rule == scale_rule::amax) return std::max(divide(f32, amax, largest), smallest_f32);
    return power_of_two_in(f32,
                           std::clamp(ceil_log2(ticks_of(amax), ticks_of(largest)), -149, 127));
}

float_scale te_f32_scale(const recipe& r, const value_list& list, float amax) {
    float factor = 1;
    if (amax != 0 && !std::isinf(amax)) {
        factor = std::min(divide(f32, parts::largest(list), amax), largest_f32);
        if (r.rule == scale_rule::amax_pow2) {
            factor = power_of_two_in(f32, floor_log2(ticks_of(factor), ticks_of_power(0)));
        }
    }
    return {-1, divide(f32, 1, factor), 1, factor};
}

// TE and ggml ignore NaN.
float amax_of(const recipe& r, std::span<const float> x) {
    const convention c = convention_of(r);
    const bool ignore_nan = c == convention::te || c == convention::ggml;
    float amax = 0;
    for (const float v : x) {
        if (std::isnan(v) && !ignore_nan) return v;
        if (!std::isnan(v)) amax = std::max(amax, std::fabs(v));
    }
    return amax;
}

// The error of the block in the selected measure, in ticks (squared: in squared ticks).
integer error_of(const recipe& r, const value_list& list, std::span<const float> x,
                 std::span<const std::uint32_t> draws, const float_scale& s) {
    integer total = 0;
    const integer unit = ticks_of(s.block) * ticks_of(s.tensor) / ticks_of_power(0);
    for (std::size_t i = 0; i < x.size(); ++i) {
        const element e = convert(r, list, x[i], s, draws.empty() ? 0u : draws[i]);
        const integer d = unit * ticks_of(e.q) / ticks_of_power(0);
        const integer error = mp::abs(integer(d - ticks_of(x[i])));
        if (r.select == selection::mse) total += error * error;
        if (r.select == selection::mae) total += error;
        if (r.select == selection::abs_max) total = std::max(total, error);
    }
    return total;
}

// Transformer Engine's measure: float32 sums of float32 errors in element order within a row; the
// sums of a tile's rows are added in halves.
float te_error(const recipe& r, const value_list& list, std::span<const float> x,
               const float_scale& s) {
    const tensor_factor t = tensor_scale(r, list);
    const float range = tensor_range(r, list);
    const std::size_t cols = r.block_cols;
    std::vector<float> rows;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % cols == 0) rows.push_back(0);
        const float product = multiply(f32, convert(r, list, x[i], s, 0).q, s.block);
        float d = 0;
        if (r.fp16_candidates) {
            d = subtract(f32, product, multiply(f32, x[i], t.stored));
        } else {
            d = subtract(f32, divide(f32, multiply(f32, product, r.tensor_amax), range), x[i]);
        }
        const float term = r.select == selection::mse ? multiply(f32, d, d) : std::fabs(d);
        rows.back() = add(f32, rows.back(), term);
    }
    rows.resize(16);
    for (std::size_t half = 8; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) rows[i] = add(f32, rows[i], rows[i + half]);
    }
    return rows[0];
}

}  // namespace

bool has_float_scale(const recipe& r) {
    return r.rule == scale_rule::two_level || r.rule == scale_rule::single_level ||
           r.rule == scale_rule::amax || r.rule == scale_rule::amax_pow2 ||
           r.rule == scale_rule::search_two_level || r.rule == scale_rule::search_single_level;
}

float_scale scale_of(const recipe& r, const value_list& list, std::span<const float> x,
                     std::span<const std::uint32_t> draws) {
    const float amax = amax_of(r, x);
    if (r.rule == scale_rule::amax || r.rule == scale_rule::amax_pow2) {
        if (convention_of(r) == convention::te) return te_f32_scale(r, list, amax);
        const float s = exact_f32_scale(r, list, amax);
        return {-1, s, 1, s};
    }
    const float_scale six = under(r, list, amax, parts::largest(list));
    if (r.rule == scale_rule::search_two_level || r.rule == scale_rule::search_single_level) {
        if (amax == 0 || std::isnan(six.block)) return six;
        std::vector<integer> scales;
        const auto is_finite = [&](int code) {
            return decode_scale(*r.scale_format, static_cast<unsigned>(code)).what ==
                   number_class::finite;
        };
        for (int code = 0; is_finite(code); ++code) {
            scales.push_back(ticks_of(scale_value(r, code)) * ticks_of(six.tensor) /
                             ticks_of_power(0));
        }
        const int code = searched_code(r, list, x, scales, six.code);
        return {code, scale_value(r, code), six.tensor, 0};
    }
    if (r.select == selection::none || std::isnan(six.block)) return six;
    const float_scale four = under(r, list, amax, 4);
    const bool smaller = convention_of(r) == convention::te
                             ? te_error(r, list, x, four) < te_error(r, list, x, six)
                             : error_of(r, list, x, draws, four) < error_of(r, list, x, draws, six);
    return smaller ? four : six;
}

element convert(const recipe& r, const value_list& list, float x, const float_scale& s,
                std::uint32_t draw) {
    const convention c = convention_of(r);
    const bool inner_nan = c == convention::torchao || c == convention::torchao_divides;
    if (!std::isfinite(s.block)) {
        if (inner_nan) return r.by->convert(r, list, NAN, {255, NAN}, draw);
        return parts::saturating(r, list, NAN, {255, NAN}, draw);
    }
    if (c == convention::exact) {
        // 0 / S if S is 0.
        const float used = s.block == 0 ? 1 : s.block;
        return parts::rounded_quotient(r, list, s.block == 0 ? std::copysign(0.0f, x) : x, used,
                                       s.tensor, draw);
    }
    if (c == convention::ggml) return r.by->convert(r, list, x, {0, s.block}, draw);
    const bool multiplies = c == convention::torchao || c == convention::te;
    const float y = multiplies ? multiply(f32, x, s.factor) : divide(f32, x, s.factor);
    if (c == convention::quark) {
        if (!std::isfinite(y)) return {-1, y};
        const element e = parts::rounded_quotient(r, list, y, 1.0f, draw);
        return e.q == 0 ? parts::element_of(list, 0.0f) : e;
    }
    // compressed-tensors multiplies the rounded magnitude by sign(y), which is 0 for -0; modelopt
    // sets the sign where y < 0.
    const bool compares = c == convention::compressed_tensors || c == convention::modelopt;
    if (compares && y == 0) return parts::element_of(list, 0.0f);
    if (inner_nan && std::isnan(y)) {
        // NaN is then encoded as an ordinary number.
        return parts::element_of(list, 1.5f);
    }
    return parts::saturating(r, list, y, {127, 1}, draw);
}

float value_of(const recipe& r, const float_scale& s, float q) {
    const convention c = convention_of(r);
    if (!std::isfinite(s.block) || std::isnan(q)) return nan_value;
    if (c == convention::exact) {
        const integer product = ticks_of(std::fabs(q)) * ticks_of(s.block) * ticks_of(s.tensor);
        const integer one = ticks_of_power(0);
        return nearest(f32, product, one * one * one, std::signbit(q));
    }
    if (c == convention::compressed_tensors) return multiply(f32, q, s.factor);
    if (by_te_reference(r) && r.given == 0 && r.tensor_amax != 0) {
        const float range = tensor_range(r, list_values(*r.element, false));
        return multiply(
            f32, q, multiply(f32, multiply(f32, s.block, r.tensor_amax), divide(f32, 1, range)));
    }
    return multiply(f32, q, multiply(f32, s.block, s.tensor));
}

}  // namespace mx::oracle
