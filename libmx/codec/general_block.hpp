// SPDX-License-Identifier: Apache-2.0
// Quantizing one block under any recipe that is not plain, for host and device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "libmx/base/exact_sum.hpp"
#include "libmx/base/random.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/convert_element.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/element_tally.hpp"
#include "libmx/codec/fractional_element.hpp"
#include "libmx/codec/search_scale.hpp"
#include "libmx/scale/misrounded_log2.hpp"

namespace mx::codec {

/// Largest magnitudes of a block, as float32 bits.
struct largest_magnitudes {
    std::uint32_t finite = 0;  ///< of its finite elements
    std::uint32_t number = 0;  ///< of its elements other than NaN
};

/// Finds the counts and extremes of a block.
MX_HD inline largest_magnitudes look_at(std::span<const float> x, block::block_stats& out) {
    largest_magnitudes most;
    std::uint32_t least = ~0u;
    out.count.elements = static_cast<std::uint32_t>(x.size());
    for (const float v : x) {
        const std::uint32_t magnitude = base::bits_of(v) & base::f32_magnitude_mask;
        out.count.nan += magnitude > base::f32_infinity ? 1u : 0u;
        out.count.inf += magnitude == base::f32_infinity ? 1u : 0u;
        out.x_max = std::max(out.x_max, magnitude);
        if (magnitude < base::f32_infinity) most.finite = std::max(most.finite, magnitude);
        least = std::min(least, magnitude - 1u);  // zero wraps to the largest number
    }
    out.x_min = least + 1u;
    out.is.zero = out.x_max == 0;
    most.number = out.count.inf != 0 ? base::f32_infinity : most.finite;
    return most;
}

// Quantizing one block as a dialect other than ocp does, under a power-of-two scale.

namespace dialect_steps {

MX_HD inline std::uint32_t magnitude_of(float x) {
    return base::bits_of(x) & base::f32_magnitude_mask;
}

// An element in the dialect's dtype.
MX_HD inline float as_held(const block_params& p, float x) {
    return p.by->arithmetic.value == element_kind::bfloat16 ? base::rounded_to_bf16(x) : x;
}

// The counts of the block, and its maximum in the dialect's dtype: rounding is monotone.
MX_HD inline std::uint32_t survey(const block_params& p, std::span<const float> x,
                                  block::block_stats& out) {
    const std::uint32_t largest = look_at(x, out).number;
    const bool nan = out.count.nan != 0 && p.by->nan.value != nan_amax::ignored;
    return nan ? base::f32_magnitude_mask
               : magnitude_of(as_held(p, base::float_from_bits(largest)));
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

/// Like quantize_block; `codes` may be empty. Counts and sums follow the same definitions with the
/// scale S, the codes and the values q of the dialect; y and r are exact. The scale may be NaN or
/// Inf: the finite elements of the block are then `poisoned`.
///
/// A dialect may leave a scale finite in a block with NaN and Inf elements; these are counted, but
/// excluded from rates and sums. A finite element that becomes NaN counts as poisoned.
///
/// `sums` is an exact_totals, or its counterpart on a device.
template <typename Totals>
MX_HD inline block::block_stats quantize_dialect_block(
    const block_params& p, std::span<const float> x, const block_place& place,
    std::span<std::uint8_t> codes, std::span<float> values, Totals* sums, bool parts) {
    using namespace dialect_steps;
    block::block_stats out{};
    const conversion& c = p.conversion;
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, place.tensor_id};
    // The draw of a block's scale has a separate stream.
    const base::random_key scale_key{p.seed, ~place.tensor_id};

    const std::uint32_t amax = survey(p, x, out);
    out.amax = amax;
    const bool random_scale = p.rule == scale::rule_id::stochastic;
    chosen_scale s =
        dialect_scale(p, amax, random_scale ? base::random_u32(scale_key, place.first) : 0u);
    if (scale::is_search(p.rule) && amax != 0 && base::is_finite(s.value)) {
        s = code_of(scale_search(p, x).best(s.code));
    }
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
    const bool unscaled = s.code == 0 && p.by->unscaled_at_code_0.value;
    const bool ours = p.by->id == dialect_id::ocp;  // its scale is NaN in blocks with NaN or Inf
    const int exponent = exponent_of(s.value);
    element_tally tally;
    const int n = static_cast<int>(x.size());
    for (int i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const int raised = place.bump != nullptr && place.bump[i % place.cols] != 0 ? 1 : 0;
        const float scale = raised != 0 ? s.value * 2.0f : s.value;
        const std::uint32_t draw = random ? base::random_u32(key, place.index(i)) : 0u;
        const float held = as_held(p, x[at]);
        float y = unscaled ? held : held / scale;
        // Some CPUs lose the sign of NaN in divisions, but some conversions depend on it.
        if (has_nan && base::is_nan(held)) y = held;
        if (narrow) y = base::rounded_to_bf16(y);
        if (s.nan_quotients) y = base::quiet_nan();
        const format::encoded exact = format::encode_magnitude(
            c.element, c.mode, base::bits_of(x[at]), exponent + raised, draw);
        converted q{};
        if (ours) {
            q.code =
                static_cast<int>(format::with_sign(c.element, exact.magnitude, exact.negative));
            q.value = p.value[q.code];
        } else {
            q = element_of(c, zeroed ? 0.0f : y, draw);
        }
        // ggml compares float32 products: one that overflows is never the nearest.
        if (p.by->id == dialect_id::ggml && magnitude_of(scale * q.value) == base::f32_infinity) {
            const std::uint32_t sign = base::bits_of(y) & base::f32_sign_mask;
            q = element_of(c, base::float_from_bits(base::bits_of(3.0f) | sign), draw);
        }
        if (keeps_codes) codes[at] = static_cast<std::uint8_t>(std::max(q.code, 0));
        const float product = scale * q.value;
        const float returned = narrow ? base::rounded_to_bf16(product) : product;
        if (!values.empty()) values[at] = base::is_nan(returned) ? base::quiet_nan() : returned;
        if (base::is_finite(x[at]) && base::is_finite(q.value) && base::is_finite(scale)) {
            const block::error_part part =
                tally.add(c.element, x[at] != 0.0f, exact, magnitude_code(c.element, q.code));
            out.counted_max = std::max(out.counted_max, magnitude_of(x[at]));
            const double exact_x = static_cast<double>(x[at]);
            const double d = static_cast<double>(scale) * static_cast<double>(q.value);
            out.sum.max_error = std::max(out.sum.max_error, std::abs(d - exact_x));
            if (sums != nullptr) sums->add(x[at], {0, d}, part, parts);
            out.count.dequant_overflow += ours || base::is_finite(returned) ? 0u : 1u;
        } else {
            out.count.poisoned += base::is_finite(x[at]) ? 1u : 0u;
        }
    }
    tally.finish(c.element, out);
    return out;
}

// Four-over-six: which of two scales a block takes (mit-han-lab/fouroversix@dadfad6). For host and
// device.

namespace fractional_steps {

/// Rows of the largest tile for which dialect te has four-over-six.
inline constexpr int largest_te_tile = 16;

// Calls visit(d - x) for every element. d has at most 34 bits and is near x, so the difference is
// exact (rounding to nearest; for elements far below the scale other roundings round it once).
template <typename Visit>
MX_HD inline void for_each_error(const block_params& p, std::span<const float> x,
                                 const block_place& place, const fractional_scale& scale,
                                 Visit&& visit) {
    const fractional_encoder encoder(p, scale, place);
    int position = 0;
    for (const float v : x) {
        visit(encoder.encode(v, position++).value - static_cast<double>(v));
    }
}

MX_HD_CALL inline double measure(const block_params& p, std::span<const float> x,
                                 const block_place& place, const fractional_scale& scale) {
    double total = 0;
    for_each_error(p, x, place, scale, [&](double e) {
        if (p.select == four_over_six::mse) total += e * e;
        if (p.select == four_over_six::mae) total += std::abs(e);
        if (p.select == four_over_six::abs_max) total = std::max(total, std::abs(e));
    });
    return total;
}

MX_HD_CALL inline void add_exactly(const block_params& p, std::span<const float> x,
                                   const block_place& place, const fractional_scale& scale,
                                   double sign, base::exact_sum& sum) {
    for_each_error(p, x, place, scale, [&](double e) {
        if (p.select == four_over_six::mae) {
            sum.add(sign * std::abs(e));
            return;
        }
        const double square = e * e;
        sum.add(sign * square);
        sum.add(sign * std::fma(e, e, -square));
    });
}

// The sum of errors as the reference quantizer of dialect te computes it: in float32, in the order
// of the elements of a row, and over the rows of a tile in a tree.
MX_HD_CALL inline float te_error(const block_params& p, std::span<const float> x,
                                 const block_place& place, const fractional_scale& scale) {
    const fractional_encoder encoder(p, scale, place);
    const int n = static_cast<int>(x.size());
    const int cols = n > place.cols * largest_te_tile ? n : place.cols;
    const int rows = (n + cols - 1) / cols;
    float sums[largest_te_tile] = {};
    for (int row = 0; row < rows; ++row) {
        float sum = 0;
        for (int i = row * cols; i < std::min(n, (row + 1) * cols); ++i) {
            const float v = x[static_cast<std::size_t>(i)];
            const float product = p.value[encoder.special_code(v)] * scale.value;
            const float d = p.candidates == candidate_kind::fp16
                                ? product - v * p.tensor.stored
                                : product * p.tensor.amax / p.outer.range - v;
            sum += p.select == four_over_six::mse ? d * d : std::abs(d);
        }
        sums[row] = sum;
    }
    for (int distance = largest_te_tile / 2; distance > 0; distance /= 2) {
        for (int row = 0; row < distance; ++row) sums[row] += sums[row + distance];
    }
    return sums[0];
}

}  // namespace fractional_steps

/// Chooses between the scale under which the block's maximum becomes 6 and the one under which it
/// becomes 4. Takes the latter if the error of the block is strictly smaller by the measure
/// `p.select`. Errors d - x are exact, and so is the comparison of their sums; under dialect te
/// both use its float32 arithmetic (te_error).
MX_HD inline fractional_scale select_scale(const block_params& p, std::span<const float> x,
                                           const block_place& place, const fractional_scale& six,
                                           const fractional_scale& four) {
    using namespace fractional_steps;
    if (p.by->two_level.value == two_level_kind::te) {
        return te_error(p, x, place, four) < te_error(p, x, place, six) ? four : six;
    }
    const double error_six = measure(p, x, place, six);
    const double error_four = measure(p, x, place, four);
    if (p.select == four_over_six::abs_max) return error_four < error_six ? four : six;
    // A sum of 2^20 terms is within 2^-32 of its exact value, so only near ties need exact sums.
    if (std::abs(error_four - error_six) > 0x1p-30 * (error_four + error_six)) {
        return error_four < error_six ? four : six;
    }
    base::exact_sum difference;
    add_exactly(p, x, place, four, 1.0, difference);
    add_exactly(p, x, place, six, -1.0, difference);
    return difference.is_negative() ? four : six;
}

// Quantizing one block whose scale is no power of two, for host and device.

namespace fractional_steps {

template <typename Totals>
MX_HD inline void quantize_elements(const block_params& p, std::span<const float> x,
                                    const block_place& place, const fractional_scale& scale,
                                    std::span<std::uint8_t> codes, Totals* sums, bool parts,
                                    block::block_stats& out) {
    const fractional_encoder encoder(p, scale, place);
    const fractional_decoder decoder(p, scale.value);
    const bool foreign = p.by->id != dialect_id::ocp;
    const bool keeps_codes = !codes.empty();
    element_tally tally;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!base::is_finite(x[i])) {
            if (keeps_codes) codes[i] = encoder.special_code(x[i]);
            continue;
        }
        const fractional_encoder::element e = encoder.encode(x[i], static_cast<int>(i));
        if (keeps_codes) codes[i] = e.code;
        const block::error_part part = tally.add(p.element, x[i] != 0, e.exact, e.magnitude);
        if (foreign) {
            out.count.dequant_overflow += base::is_finite(decoder.decode(e.code)) ? 0u : 1u;
        }
        const double error = std::abs(e.value - static_cast<double>(x[i]));
        out.sum.max_error = std::max(out.sum.max_error, error);
        if (sums != nullptr) sums->add(x[i], {0, e.value}, part, parts);
    }
    tally.finish(p.element, out);
}

}  // namespace fractional_steps

/// quantize_block for scale formats that are not powers of two; `codes` may be empty. Uses exact
/// arithmetic under dialect ocp, the dialect's float32 operations otherwise. In both cases y = x /
/// S, with S the exact product of block and tensor scale, decides overflow and clamping, and d = S
/// * q is exact: at most 40 bits. A zero scale makes every element a zero of its sign; non-zero
/// ones count as underflow.
template <typename Totals>
MX_HD inline block::block_stats quantize_fractional(const block_params& p, std::span<const float> x,
                                                    const block_place& place,
                                                    std::span<std::uint8_t> codes, Totals* sums,
                                                    bool parts) {
    block::block_stats out{};
    const largest_magnitudes seen = look_at(x, out);
    out.amax = out.count.nan == 0 || nan_decides(p) ? out.x_max : seen.number;
    fractional_scale scale = choose_scale(p, out.amax, p.largest);
    if (p.select != four_over_six::none && !base::is_nan(scale.value)) {
        scale = select_scale(p, x, place, scale, choose_scale(p, out.amax, 4.0f));
    }
    const bool searched = scale::is_search(p.rule) && out.amax != 0 && p.tensor.decode > 0;
    if (searched && !base::is_nan(scale.value)) {
        const int best = scale_search(p, x).best(scale.code);
        scale = fractional_steps::coded(p, static_cast<std::uint8_t>(best));
    }
    out.scale_code = scale.code;
    out.scale = scale.value;
    if (base::is_nan(scale.value)) {
        out.count.poisoned = out.count.elements - out.count.nan - out.count.inf;
        for (std::uint8_t& code : codes) code = p.poisoned_code;
        return out;
    }
    out.counted_max = seen.finite;
    fractional_steps::quantize_elements(p, x, place, scale, codes, sums, parts, out);
    return out;
}

/// quantize_block for such recipes; `codes` and `values` may be empty.
template <typename Totals>
MX_HD inline block::block_stats quantize_general(const block_params& p, std::span<const float> x,
                                                 const block_place& place,
                                                 std::span<std::uint8_t> codes,
                                                 std::span<float> values, Totals* sums,
                                                 bool parts) {
    if (p.scale_format->power_of_two()) {
        return quantize_dialect_block(p, x, place, codes, values, sums, parts);
    }
    const block::block_stats out = quantize_fractional(p, x, place, codes, sums, parts);
    const fractional_decoder decoder(p, out.scale);
    const bool keeps = p.by->inf_value.value == inf_element::keep;
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = keeps && !base::is_finite(x[i]) ? x[i] : decoder.decode(codes[i]);
    }
    return out;
}

}  // namespace mx::codec
