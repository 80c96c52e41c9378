// SPDX-License-Identifier: Apache-2.0
// Quantizing one block as a dialect other than ocp does, under a power-of-two scale, for host and
// device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/chunk_terms.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/element_tally.hpp"
#include "libmx/codec/narrow_float.hpp"
#include "libmx/scale/misrounded_log2.hpp"

namespace mx::codec {

namespace dialect_steps {

MX_HD inline std::uint32_t magnitude_of(float x) {
    return base::bits_of(x) & base::f32_magnitude_mask;
}

// The block as the dialect's dtype holds it.
MX_HD inline float as_held(const block_params& p, float x) {
    return p.by->arithmetic.value == element_kind::bfloat16 ? bfloat16_arithmetic::round(x) : x;
}

// Counts of the block, and the maximum that the dialect sees.
MX_HD inline std::uint32_t survey(const block_params& p, std::span<const float> x,
                                  block::block_stats& out) {
    std::uint32_t amax = 0;
    std::uint32_t least = ~0u;
    bool nan = false;
    out.count.elements = static_cast<std::uint32_t>(x.size());
    for (const float v : x) {
        const std::uint32_t magnitude = magnitude_of(v);
        out.x_max = std::max(out.x_max, magnitude);
        least = std::min(least, magnitude - 1u);  // zero wraps to the top and never wins
        out.count.inf += magnitude == base::f32_infinity ? 1u : 0u;
        if (magnitude > base::f32_infinity) {
            ++out.count.nan;
            nan = true;
        } else {
            amax = std::max(amax, magnitude_of(as_held(p, v)));
        }
    }
    out.x_min = least + 1u;
    out.is.zero = out.x_max == 0;
    if (nan && p.by->nan.value != nan_amax::ignored) return base::f32_magnitude_mask;
    return amax;
}

MX_HD inline bool flushed(const block_params& p, std::uint32_t amax) {
    if (!p.flush_subnormals || amax == 0 || amax >= base::f32_infinity) return false;
    const int e = scale::binade_of(amax).exponent;
    return scale::floor_rounded_log2(scale::log2_in_float32, amax, e) <= -127;
}

MX_HD_CALL inline converted element_of(const conversion& c, float y, std::uint32_t draw) {
    return convert(c, base::bits_of(y), draw);
}

MX_HD inline void poison(block::block_stats& out, const conversion& c,
                         std::span<std::uint8_t> codes, std::span<float> values) {
    out.count.poisoned = out.count.elements - out.count.nan - out.count.inf;
    const int code = element_of(c, base::quiet_nan(), 0).code;
    for (std::uint8_t& to : codes) to = static_cast<std::uint8_t>(std::max(code, 0));
    for (float& to : values) to = base::quiet_nan();
}

// Exponent of a power of two, subnormal ones included.
MX_HD inline int exponent_of(float power) {
    return scale::binade_of(base::bits_of(power)).exponent;
}

// The magnitude part of a code.
MX_HD inline std::uint32_t magnitude_code(const format::element_params& f, int code) {
    const auto bits = static_cast<std::uint32_t>(code);
    const std::uint32_t sign = 1u << (f.bits - 1);
    if ((bits & sign) == 0) return bits;
    return f.floating ? bits ^ sign : (~bits + 1u) & ((sign << 1) - 1u);
}

}  // namespace dialect_steps

/// As quantize_block; `codes` may be empty. Counts and sums follow the same definitions with the
/// scale S, the codes and the values q of the dialect; y and r are exact. Everything is summed in
/// double. The scale may be NaN or Inf: the finite elements of the block are then `poisoned`.
///
/// A dialect may leave a scale finite beside NaN and Inf elements; these are counted and stay out
/// of rates and sums. A finite element that becomes NaN counts as poisoned.
MX_HD inline block::block_stats quantize_dialect_block(const block_params& p,
                                                       std::span<const float> x,
                                                       const block_place& place,
                                                       std::span<std::uint8_t> codes,
                                                       std::span<float> values, bool parts) {
    using namespace dialect_steps;
    block::block_stats out{};
    const conversion& c = p.conversion;
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, place.tensor_id};
    // The draw of a block's scale comes from a stream of its own.
    const base::random_key scale_key{p.seed, ~place.tensor_id};

    const std::uint32_t amax = survey(p, x, out);
    out.amax = amax;
    const bool random_scale = p.rule == scale::rule_id::stochastic;
    const chosen_scale s =
        dialect_scale(p, amax, random_scale ? base::random_u32(scale_key, place.first) : 0u);
    out.scale = s.value;
    out.scale_code = static_cast<std::uint8_t>(std::max(s.code, 0));
    if (!base::is_finite(s.value)) {
        poison(out, c, codes, values);
        return out;
    }

    const bool zeroed = flushed(p, amax);
    const bool narrow = p.by->arithmetic.value == element_kind::bfloat16;
    const bool has_nan = out.count.nan != 0;
    const bool keeps_codes = !codes.empty();
    const int exponent = exponent_of(s.value);
    element_tally tally;
    chunk_terms<double> terms;
    const int n = static_cast<int>(x.size());
    for (int i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int raised = place.bump != nullptr && place.bump[i % place.cols] != 0 ? 1 : 0;
        const float scale = raised != 0 ? s.value * 2.0f : s.value;
        const std::uint32_t draw = random ? base::random_u32(key, place.index(i)) : 0u;
        const float held = as_held(p, x[at]);
        float y = held / scale;
        // Its sign, which some conversions look at, is lost in divisions of some processors.
        if (has_nan && base::is_nan(held)) y = held;
        if (narrow) y = bfloat16_arithmetic::round(y);
        if (s.nan_quotients) y = base::quiet_nan();
        converted q = element_of(c, zeroed ? 0.0f : y, draw);
        // ggml compares float32 products: one that overflows is never the nearest.
        if (p.by->id == dialect_id::ggml && magnitude_of(scale * q.value) == base::f32_infinity) {
            const std::uint32_t sign = base::bits_of(y) & base::f32_sign_mask;
            q = element_of(c, base::float_from_bits(base::bits_of(3.0f) | sign), draw);
        }
        if (keeps_codes) codes[at] = static_cast<std::uint8_t>(std::max(q.code, 0));
        const float product = scale * q.value;
        const float returned = narrow ? bfloat16_arithmetic::round(product) : product;
        if (!values.empty()) values[at] = base::is_nan(returned) ? base::quiet_nan() : returned;
        if (base::is_finite(x[at]) && base::is_finite(q.value) && base::is_finite(scale)) {
            const format::encoded exact = format::encode_magnitude(
                c.element, c.mode, base::bits_of(x[at]), exponent + raised, draw);
            const block::error_part part =
                tally.add(c.element, x[at] != 0.0f, exact, magnitude_code(c.element, q.code));
            out.counted_max = std::max(out.counted_max, magnitude_of(x[at]));
            const double exact_x = static_cast<double>(x[at]);
            const double d = static_cast<double>(scale) * static_cast<double>(q.value);
            terms.set(i % chunk_size, exact_x, d, d - exact_x, part);
            out.count.dequant_overflow += base::is_finite(returned) ? 0u : 1u;
        } else {
            out.count.poisoned += base::is_finite(x[at]) ? 1u : 0u;
        }
        if (i % chunk_size == chunk_size - 1 || i == n - 1) {
            add_chunk(terms, parts, out.sum, out.part);
            terms = {};
        }
    }
    tally.finish(c.element, out);
    return out;
}

}  // namespace mx::codec
