// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/dialect_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libmx/quantize/chunk_terms.hpp"
#include "libmx/quantize/dialect_element.hpp"
#include "libmx/quantize/dialect_scale.hpp"
#include "libmx/quantize/element_tally.hpp"
#include "libmx/quantize/narrow_float.hpp"
#include "libmx/scale/misrounded_log2.hpp"

namespace mx::quantize {
namespace {

using base::bits_of;

std::uint32_t magnitude_of(float x) { return bits_of(x) & base::f32_magnitude_mask; }

// The block as the dialect's dtype holds it.
float as_held(const block_params& p, float x) {
    return p.by->arithmetic.value == element_kind::bfloat16 ? bfloat16_arithmetic::round(x) : x;
}

// Counts of the block, and the maximum that the dialect sees.
std::uint32_t survey(const block_params& p, std::span<const float> x, block::block_stats& out) {
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

bool flushed(const block_params& p, std::uint32_t amax) {
    if (!p.flush_subnormals || amax == 0 || amax >= base::f32_infinity) return false;
    const int e = scale::binade_of(amax).exponent;
    return scale::floor_rounded_log2(scale::log2_in_float32, amax, e) <= -127;
}

void poison(block::block_stats& out, const conversion& c, std::span<std::uint8_t> codes,
            std::span<float> values) {
    out.count.poisoned = out.count.elements - out.count.nan - out.count.inf;
    const int code = convert(c, 0x7fc00000u, 0).code;
    std::fill(codes.begin(), codes.end(), static_cast<std::uint8_t>(std::max(code, 0)));
    std::fill(values.begin(), values.end(), std::numeric_limits<float>::quiet_NaN());
}

// Exponent of a power of two, subnormal ones included.
int exponent_of(float power) { return scale::binade_of(bits_of(power)).exponent; }

// The magnitude part of a code.
std::uint32_t magnitude_code(const format::element_params& f, int code) {
    const auto bits = static_cast<std::uint32_t>(code);
    const std::uint32_t sign = 1u << (f.bits - 1);
    if ((bits & sign) == 0) return bits;
    return f.floating ? bits ^ sign : (~bits + 1u) & ((sign << 1) - 1u);
}

}  // namespace

block::block_stats quantize_dialect_block(const block_params& p, std::span<const float> x,
                                          const block_place& place, std::span<std::uint8_t> codes,
                                          std::span<float> values, bool parts) {
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
    if (!std::isfinite(s.value)) {
        poison(out, c, codes, values);
        return out;
    }

    const bool zeroed = flushed(p, amax);
    const bool narrow = p.by->arithmetic.value == element_kind::bfloat16;
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
        if (narrow) y = bfloat16_arithmetic::round(y);
        if (s.nan_quotients) y = std::numeric_limits<float>::quiet_NaN();
        converted q = convert(c, bits_of(zeroed ? 0.0f : y), draw);
        // ggml compares float32 products: one that overflows is never the nearest.
        if (p.by->id == dialect_id::ggml && std::isinf(scale * q.value)) {
            q = convert(c, bits_of(std::copysign(3.0f, y)), draw);
        }
        codes[at] = static_cast<std::uint8_t>(std::max(q.code, 0));
        const float product = scale * q.value;
        const float returned = narrow ? bfloat16_arithmetic::round(product) : product;
        if (!values.empty()) values[at] = returned;
        if (std::isfinite(x[at]) && std::isfinite(q.value) && std::isfinite(scale)) {
            const format::encoded exact = format::encode_magnitude(
                c.element, c.mode, bits_of(x[at]), exponent + raised, draw);
            const block::error_part part =
                tally.add(c.element, x[at] != 0.0f, exact, magnitude_code(c.element, q.code));
            out.counted_max = std::max(out.counted_max, magnitude_of(x[at]));
            const double exact_x = static_cast<double>(x[at]);
            const double d = static_cast<double>(scale) * static_cast<double>(q.value);
            terms.set(i % chunk_size, exact_x, d, d - exact_x, part);
            out.count.dequant_overflow += std::isfinite(returned) ? 0u : 1u;
        } else {
            out.count.poisoned += std::isfinite(x[at]) ? 1u : 0u;
        }
        if (i % chunk_size == chunk_size - 1 || i == n - 1) {
            terms.add_to(out.sum);
            if (parts) terms.add_to(out.part);
            terms = {};
        }
    }
    tally.finish(c.element, out);
    return out;
}

void bumps_of_row(std::span<const float> row, std::span<std::uint8_t> bump) {
    std::vector<std::uint32_t> largest(bump.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        std::uint32_t& m = largest[i % bump.size()];
        m = std::max(m, magnitude_of(row[i]));
    }
    for (std::size_t i = 0; i < bump.size(); ++i) {
        const std::uint32_t u = largest[i];
        bump[i] = 0;
        if (u == 0 || u >= base::f32_infinity) continue;
        const int e = scale::binade_of(u).exponent;
        const int rounded = scale::floor_rounded_log2(scale::log2_in_float32, u, e);
        bump[i] = static_cast<double>(base::float_from_bits(u)) > 1.75 * base::exact_pow2(rounded);
    }
}

}  // namespace mx::quantize
