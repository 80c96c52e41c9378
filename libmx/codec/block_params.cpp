// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/block_params.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "libmx/base/bits.hpp"
#include "libmx/base/status.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec {
namespace {

dialect_step even_step(const dialect& by, int mantissa_bits) {
    const auto half = [](int bits) { return 1u << (22 - bits); };
    // Ties round up where the exponent changes, because the lower candidate is odd.
    dialect_step s{.even = true};
    switch (by.even.value) {
        case even_kind::fbgemm:
            s.added = half(mantissa_bits) - 1u;
            s.carries_to_nan = true;
            s.log2 = by.log2.value;
            break;
        case even_kind::one_bit:
            s.added = half(1);
            break;
        case even_kind::element:
        case even_kind::element_capped:
            s.added = half(mantissa_bits);
            break;
    }
    return s;
}

dialect_step rceil_step(const dialect& by, float largest) {
    switch (by.rceil.value) {
        case rceil_kind::reciprocal:
            return {.factor = 1.0f / largest, .exponent = exponent_kind::rounded_up};
        case rceil_kind::quotient:
            return {.divisor = largest, .exponent = exponent_kind::rounded_up};
        case rceil_kind::log2:
            return {
                .divisor = largest, .log2 = log2_kind::float32, .exponent = exponent_kind::ceil};
        case rceil_kind::exact:
            break;
    }
    return {.exponent = exponent_kind::exact};
}

// The rules that dialects have, in their arithmetic; `p` has the dialect's elements.
dialect_step dialect_step_of(const recipe& r, const block_params& p) {
    const format::element_format& f = *r.element;
    const dialect& by = *r.by;
    const log2_kind log2 = by.log2.value;
    const int emax = by.emax.value == emax_kind::exponent_bits ? f.exponent_bits
                                                               : scale::facts_of(f, r.emax).emax;
    const float all_ones =
        base::exact_pow2f(f.emax()) * (2.0f - base::exact_pow2f(-f.mantissa_bits));
    dialect_step s;
    switch (r.rule->id) {
        case scale::rule_id::ceil:
            s = {.log2 = log2, .exponent = exponent_kind::ceil, .emax = emax};
            break;
        case scale::rule_id::even:
            s = even_step(by, f.mantissa_bits);
            s.emax = emax;
            break;
        case scale::rule_id::nearest:
            s = {.exponent = exponent_kind::nearest, .emax = emax};
            break;
        case scale::rule_id::stochastic:  // a carry beyond Inf gives NaN, as with even
            s = {.drawn_bits = p.step.drawn_bits,
                 .carries_to_nan = true,
                 .log2 = log2,
                 .emax = emax};
            break;
        case scale::rule_id::rceil:
            s = rceil_step(by, p.value[p.element.max_positive]);
            break;
        case scale::rule_id::enhanced:
            s = {.divisor = all_ones, .log2 = log2, .exponent = exponent_kind::ceil};
            break;
        case scale::rule_id::ceil_div_max:
            s = {.factor = 2.0f,
                 .divisor = 2.0f * all_ones,
                 .log2 = log2,
                 .exponent = exponent_kind::ceil,
                 .saturates = true};
            break;
        default:  // floor; floor-bump, which raises exponents per position (bumps_of_row)
            s = {.log2 = log2, .emax = emax};
            break;
    }
    s.saturates |= by.inf.value == inf_amax::saturate || by.inf.value == inf_amax::power_128 ||
                   by.even.value == even_kind::element_capped;
    const bool rceil = r.rule->id == scale::rule_id::rceil;
    if (by.at_code_0.value == code_0_divisor::smallest_normal) s.at_code_0 = 0x1p-126f;
    if (by.at_code_0.value == code_0_divisor::one ||
        (by.at_code_0.value == code_0_divisor::smallest_normal && rceil)) {
        s.at_code_0 = 1.0f;
    }
    s.zeros_beside_nan = by.nan.value == nan_amax::nan_alone && !rceil;
    return s;
}

}  // namespace

block_params params_of(const recipe& r, const tensor_facts& facts) {
    const format::element_format& f = *r.element;
    block_params p{};
    p.by = r.by;
    p.has_blocks = has_blocks(r);
    p.format = &f;
    p.ocp = r.by->id == dialect_id::ocp && r.scale_format->power_of_two() &&
            !scale::is_search(r.rule->id);
    p.flush_subnormals = r.flush_subnormals;
    p.bumps = bumps_positions(r);
    p.mode = {r.round, r.ties, r.random_bits};
    p.step = scale::step_under(*r.rule, f, r.emax);
    p.searches = scale::is_search(r.rule->id);
    p.has_tensor_scale = scale::has_tensor_scale(r.rule->id);
    p.float_power = r.rule->id == scale::rule_id::amax_pow2;
    p.has_offset = r.offset == offset_kind::fp16;
    p.range = r.range;
    p.seed = r.seed;
    p.element = format::params_of(f, r.minimum == int_min::full);
    for (std::uint32_t code = 0; code < 256; ++code) p.value[code] = format::decode(f, code);
    constexpr std::uint32_t quiet_nan = 0x7fc00000u;
    p.poisoned_code =
        static_cast<std::uint8_t>(format::cast_code(p.element, p.mode, quiet_nan, true, 0));
    const bool power_of_two = r.scale_format->power_of_two();
    if (power_of_two) {
        p.conversion =
            conversion_of(*r.by, f, p.mode, true, r.minimum == int_min::full && !f.floating());
        p.element = p.conversion.element;
        std::copy(std::begin(p.conversion.value), std::end(p.conversion.value), p.value);
    } else if (r.by->nan_value.value == nan_element::nan_or_inner) {
        const conversion c = conversion_of(*r.by, f, p.mode, true, false);
        p.poisoned_code = static_cast<std::uint8_t>(convert(c, quiet_nan, 0).code);
    }
    if (r.by->id != dialect_id::ocp) p.dialect_rule = dialect_step_of(r, p);
    p.scale_format = r.scale_format;
    if (r.scale_format->is_number()) {
        p.scale_number = format::params_of(r.scale_format->number, false);
    }
    p.largest = format::decode(f, f.max_code());
    p.select = r.select;
    p.candidates = r.candidates;
    p.outer_areas = has_outer_areas(r);
    p.measure = r.measure;
    p.reach = r.reach;
    p.tensor = tensor_scale_of(r, facts);
    p.outer = outer_rule_of(r);
    return p;
}

void set_tensor_scale(block_params& p, float stored) {
    if (!std::isfinite(stored) || stored < 0) {
        throw base::error(
            base::error_kind::input,
            fmt::format("a tensor scale of {}: it must be finite and not negative", stored));
    }
    p.tensor = stored_tensor_scale(p.by->two_level.value, stored);
}

}  // namespace mx::codec
