// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/fractional_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "libmx/base/random.hpp"
#include "libmx/quantize/chunk_terms.hpp"
#include "libmx/quantize/element_tally.hpp"
#include "libmx/quantize/four_over_six.hpp"

namespace mx::quantize {
namespace {

using base::bits_of;

// What a first look at the block finds; magnitudes as float32 bits.
struct survey {
    std::uint32_t nan = 0, inf = 0;
    std::uint32_t most = 0;    // also NaN and Inf
    std::uint32_t finite = 0;  // largest finite one
    std::uint32_t least = 0;   // smallest non-zero one
};

survey look_at(std::span<const float> x) {
    survey s;
    std::uint32_t least = ~0u;
    for (const float v : x) {
        const std::uint32_t magnitude = bits_of(v) & base::f32_magnitude_mask;
        s.nan += magnitude > base::f32_infinity ? 1u : 0u;
        s.inf += magnitude == base::f32_infinity ? 1u : 0u;
        s.most = std::max(s.most, magnitude);
        if (magnitude < base::f32_infinity) s.finite = std::max(s.finite, magnitude);
        least = std::min(least, magnitude - 1u);  // zero wraps to the top and never wins
    }
    s.least = least + 1u;
    return s;
}

bool is_finite(float x) { return (bits_of(x) & base::f32_magnitude_mask) < base::f32_infinity; }

// The index of the nearest value by float32 distance, the first of equals, as ggml searches:
// positive values, then negative ones, whose zero never wins.
std::uint8_t nearest_by_search(const block_params& p, float x, float scale) {
    std::uint8_t best = 0;
    float best_error = std::abs(p.value[0] * scale - x);
    for (std::uint8_t code = 1; code < 16; ++code) {
        const float error = std::abs(p.value[code] * scale - x);
        if (error < best_error) {
            best = code;
            best_error = error;
        }
    }
    return best;
}

void quantize_elements(const block_params& p, std::span<const float> x, const block_place& place,
                       const fractional_scale& scale, std::span<std::uint8_t> codes, bool parts,
                       block::block_stats& out) {
    const fractional_encoder encoder(p, scale, place);
    const bool foreign = p.by->id != dialect_id::ocp;
    element_tally tally;
    const int n = static_cast<int>(x.size());
    for (int begin = 0; begin < n; begin += chunk_size) {
        const int count = std::min(chunk_size, n - begin);
        chunk_terms<double> terms;
        for (int i = 0; i < count; ++i) {
            const auto at = static_cast<std::size_t>(begin + i);
            if (!is_finite(x[at])) {
                codes[at] = encoder.special_code(x[at]);
                continue;
            }
            const fractional_encoder::element e = encoder.encode(x[at], begin + i);
            codes[at] = e.code;
            const block::error_part part = tally.add(p.element, x[at] != 0, e.exact, e.magnitude);
            if (foreign) {
                float returned = 0;
                dequantize_fractional(p, scale.value, codes.subspan(at, 1), {&returned, 1});
                out.count.dequant_overflow += std::isfinite(returned) ? 0u : 1u;
            }
            const auto exact_x = static_cast<double>(x[at]);
            terms.set(i, exact_x, e.value, e.value - exact_x, part);
        }
        terms.add_to(out.sum);
        if (parts) terms.add_to(out.part);
    }
    tally.finish(p.element, out);
}

}  // namespace

fractional_encoder::fractional_encoder(const block_params& p, const fractional_scale& scale,
                                       const block_place& place)
    : p_(p), scale_(scale), place_(place) {
    const scale_product product = product_of(p, scale.value);
    zero_ = !(product.block > 0 && product.tensor > 0 && std::isfinite(product.block) &&
              std::isfinite(product.tensor));
    if (zero_) return;
    exact_ = format::exact_product(product.block, product.tensor);
    value_ = format::value_of(exact_);
}

std::uint32_t fractional_encoder::draw(int position) const {
    if (p_.mode.how != format::rounding::stochastic) return 0;
    return base::random_u32({p_.seed, place_.tensor_id}, place_.index(position));
}

// The code of x under float32 arithmetic: y = x times (or divided by) the factor, rounded.
std::uint8_t fractional_encoder::dialect_code(float x, std::uint32_t draw) const {
    const two_level_kind convention = p_.by->two_level.value;
    if (convention == two_level_kind::ggml) return nearest_by_search(p_, x, scale_.value);
    const bool divides =
        convention == two_level_kind::modelopt || convention == two_level_kind::compressed_tensors;
    const float y = divides ? x / scale_.factor : x * scale_.factor;
    if (std::isnan(y)) return p_.poisoned_code;
    // An infinite y counts as far beyond the largest value.
    const format::encoded e = format::encode_magnitude(p_.element, p_.mode, bits_of(y), 0, draw);
    // Both take the sign from y < 0 (or sign(y)), which loses that of a zero.
    const bool negative = e.negative && !(divides && y == 0);
    return static_cast<std::uint8_t>(format::with_sign(p_.element, e.magnitude, negative));
}

fractional_encoder::element fractional_encoder::encode(float x, int position) const {
    const std::uint32_t random = draw(position);
    const bool negative = (bits_of(x) & base::f32_sign_mask) != 0;
    element out{};
    out.exact = zero_ ? format::encoded{0, 0, false, negative}
                      : format::encode_quotient(p_.element, p_.mode, bits_of(x), exact_, random);
    if (p_.by->two_level.value == two_level_kind::exact) {
        out.magnitude = out.exact.magnitude;
        out.code =
            static_cast<std::uint8_t>(format::with_sign(p_.element, out.magnitude, negative));
    } else {
        out.code = dialect_code(x, random);
        out.magnitude = out.code & ((1u << (p_.element.bits - 1)) - 1u);  // floating formats only
    }
    out.value = value_ * static_cast<double>(p_.value[out.code]);
    return out;
}

std::uint8_t fractional_encoder::special_code(float x) const { return dialect_code(x, 0); }

block::block_stats quantize_fractional(const block_params& p, std::span<const float> x,
                                       const block_place& place, std::span<std::uint8_t> codes,
                                       bool parts) {
    block::block_stats out{};
    const survey seen = look_at(x);
    out.count.elements = static_cast<std::uint32_t>(x.size());
    out.count.nan = seen.nan;
    out.count.inf = seen.inf;
    out.is.zero = seen.most == 0;
    out.x_max = seen.most;
    out.x_min = seen.least;
    out.amax = seen.nan == 0 || nan_decides(p) ? seen.most
               : seen.inf != 0                 ? base::f32_infinity
                                               : seen.finite;
    fractional_scale scale = choose_scale(p, out.amax, p.largest);
    if (p.select != four_over_six::none && !std::isnan(scale.value)) {
        scale = select_scale(p, x, place, scale, choose_scale(p, out.amax, 4.0f));
    }
    out.scale_code = scale.code;
    out.scale = scale.value;
    if (std::isnan(scale.value)) {
        out.count.poisoned = out.count.elements - seen.nan - seen.inf;
        std::fill(codes.begin(), codes.end(), p.poisoned_code);
        return out;
    }
    out.counted_max = seen.finite;
    quantize_elements(p, x, place, scale, codes, parts, out);
    return out;
}

void dequantize_fractional(const block_params& p, float scale, std::span<const std::uint8_t> codes,
                           std::span<float> values) {
    const scale_product product = product_of(p, scale);
    if (p.by->two_level.value == two_level_kind::exact) {
        const double s = static_cast<double>(product.block) * static_cast<double>(product.tensor);
        for (std::size_t i = 0; i < codes.size(); ++i) {
            values[i] = static_cast<float>(s * static_cast<double>(p.value[codes[i]]));
        }
        return;
    }
    const float s = product.block * product.tensor;
    // modelopt's table of values has one zero, without a sign.
    const bool one_zero = p.by->two_level.value == two_level_kind::modelopt;
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const float q = p.value[codes[i]];
        values[i] = (one_zero && q == 0 ? 0.0f : q) * s;
    }
}

}  // namespace mx::quantize
