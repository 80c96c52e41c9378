// SPDX-License-Identifier: Apache-2.0
#include "libmx/quantize/block_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "libmx/format/decode.hpp"
#include "libmx/quantize/chunk_terms.hpp"
#include "libmx/quantize/dialect_kernel.hpp"
#include "libmx/quantize/element_tally.hpp"
#include "libmx/quantize/fractional_kernel.hpp"
#include "libmx/quantize/narrow_float.hpp"

namespace mx::quantize {
namespace {

using base::bits_of;
using base::float_from_bits;

// Squares of anything smaller leave float32's normal range; a block with so small an element next
// to its maximum is summed in double.
constexpr float least_float_term = 0x1p-60f;

// What a first look at the block finds.
struct survey {
    std::uint32_t nan = 0;
    std::uint32_t inf = 0;
    std::uint32_t amax = 0;  // magnitude bits; above f32_infinity when there is a NaN
    std::uint32_t amin = 0;  // of the non-zero values
    float low = 0, high = 0;
};

survey look_at(std::span<const float> x) {
    survey s;
    s.low = s.high = x[0];
    std::uint32_t least = ~0u;
    for (const float v : x) {
        const std::uint32_t magnitude = bits_of(v) & base::f32_magnitude_mask;
        s.nan += magnitude > base::f32_infinity ? 1u : 0u;
        s.inf += magnitude == base::f32_infinity ? 1u : 0u;
        s.amax = std::max(s.amax, magnitude);
        least = std::min(least, magnitude - 1u);  // zero wraps to the top and never wins
        s.low = v < s.low ? v : s.low;
        s.high = v > s.high ? v : s.high;
    }
    s.amin = least + 1u;
    return s;
}

// fp16(max/2 + min/2): the halves are formed first, so the sum cannot overflow. A zero is +0.
std::uint16_t offset_of(const survey& s) {
    const std::uint16_t half = base::half_saturated(0.5f * s.high + 0.5f * s.low);
    return half == 0x8000u ? std::uint16_t{0} : half;
}

// float32((max - min) / 2) with one rounding.
float half_range(const survey& s) {
    const float range = s.high - s.low;
    return std::isinf(range) ? 0.5f * s.high - 0.5f * s.low : 0.5f * range;
}

// What the scale rule sees when there is an offset.
std::uint32_t range_bits(const block_params& p, const survey& s, std::span<const float> x,
                         float offset) {
    if (p.range == range_kind::half) return bits_of(half_range(s));
    std::uint32_t range = 0;
    for (const float v : x) range = std::max(range, bits_of(v - offset) & base::f32_magnitude_mask);
    return range;
}

// Encodes elements under a power-of-two scale and tallies them. A local object: nothing outside can
// alias its members, so they stay in registers.
class element_encoder {
  public:
    element_encoder(const block_params& p, int scale_exponent)
        : f_(p.element), mode_(p.mode), exponent_(scale_exponent) {}

    struct element {
        std::uint8_t code;
        block::error_part part;
    };

    element encode(float z, std::uint32_t draw) {
        const std::uint32_t bits = bits_of(z);
        const format::encoded e = format::encode_magnitude(f_, mode_, bits, exponent_, draw);
        const bool nonzero = (bits & base::f32_magnitude_mask) != 0;
        const block::error_part part = tally_.add(f_, nonzero, e, e.magnitude);
        return {static_cast<std::uint8_t>(format::with_sign(f_, e.magnitude, e.negative)), part};
    }

    void finish(block::block_stats& out) const { tally_.finish(f_, out); }

  private:
    format::element_params f_;
    format::rounding_mode mode_;
    int exponent_;
    element_tally tally_;
};

// d - x = (O + product) - x without the cancellation of a large offset: x - O is formed as a sum of
// two doubles without error (Knuth's TwoSum), and S*q lies near its larger part.
double error_of(double x, double offset, double product) {
    const double difference = x - offset;
    const double x_part = difference + offset;
    const double rest = (x - x_part) - (offset - (x_part - difference));
    return (product - difference) - rest;
}

void scale_sums(block::block_sums& sum, block::block_parts& part, double s) {
    const double s2 = s * s;
    sum.error2 *= s2;
    sum.x2 *= s2;
    sum.xd *= s2;
    sum.d2 *= s2;
    sum.error *= s;
    sum.max_error *= s;
    part.clamp_error2 *= s2;
    part.underflow_error2 *= s2;
    part.grid_error2 *= s2;
}

// Encodes the block chunk by chunk and sums as T says: float in units of the scale (no offset), or
// double in units of x.
template <typename T>
void quantize_chunks(const block_params& p, std::span<const float> x, const block_place& place,
                     float offset, int exponent, std::span<std::uint8_t> codes, bool parts,
                     block::block_stats& out) {
    constexpr bool in_x = std::is_same_v<T, double>;
    const double s = base::exact_pow2(exponent);
    const float reciprocal = base::exact_pow2f(-exponent);
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, place.tensor_id};
    element_encoder encoder(p, exponent);
    const int n = static_cast<int>(x.size());
    for (int begin = 0; begin < n; begin += chunk_size) {
        const int count = std::min(chunk_size, n - begin);
        chunk_terms<T> terms;
        std::uint8_t code[chunk_size];
        for (int i = 0; i < count; ++i) {
            const auto at = static_cast<std::size_t>(begin + i);
            const float z = in_x ? x[at] - offset : x[at];
            const std::uint32_t draw = random ? base::random_u32(key, place.index(begin + i)) : 0u;
            const element_encoder::element e = encoder.encode(z, draw);
            code[i] = e.code;
            const float q = p.value[e.code];
            if constexpr (in_x) {
                const double product = s * static_cast<double>(q);
                terms.set(
                    i, static_cast<double>(x[at]), static_cast<double>(offset) + product,
                    error_of(static_cast<double>(x[at]), static_cast<double>(offset), product),
                    e.part);
            } else {
                const float y = z * reciprocal;
                terms.set(i, y, q, q - y, e.part);
            }
        }
        std::copy_n(code, count, codes.begin() + begin);
        terms.add_to(out.sum);
        if (parts) terms.add_to(out.part);
    }
    encoder.finish(out);
}

}  // namespace

namespace {

block::block_stats quantize_plain(const block_params& p, std::span<const float> x,
                                  const block_place& place, std::span<std::uint8_t> codes,
                                  bool parts) {
    block::block_stats out{};
    const survey seen = look_at(x);
    out.count.elements = static_cast<std::uint32_t>(x.size());
    out.count.nan = seen.nan;
    out.count.inf = seen.inf;
    out.is.zero = seen.amax == 0;
    out.x_max = seen.amax;
    out.x_min = seen.amin;
    if (seen.nan + seen.inf != 0) {
        out.scale_code = format::e8m0_nan;
        out.amax = seen.amax;
        out.count.poisoned = out.count.elements - seen.nan - seen.inf;
        std::fill(codes.begin(), codes.end(), p.poisoned_code);
        return out;
    }

    out.offset = p.has_offset ? offset_of(seen) : std::uint16_t{0};
    const float offset = base::float_from_half(out.offset);
    scale::rule_input rule = p.facts;
    rule.amax_bits = p.has_offset ? range_bits(p, seen, x, offset) : seen.amax;
    out.amax = rule.amax_bits;
    const int code = scale::scale_code(p.rule, rule);
    out.scale_code = static_cast<std::uint8_t>(code);
    if (code == format::e8m0_nan) {  // a finite maximum that rounds beyond every scale
        out.count.poisoned = out.count.elements;
        std::fill(codes.begin(), codes.end(), p.poisoned_code);
        return out;
    }

    out.counted_max = seen.amax;
    const int exponent = code - format::e8m0_bias;
    const float least = float_from_bits(seen.amin) * base::exact_pow2f(-exponent);
    if (p.has_offset || (seen.amin != 0 && least < least_float_term)) {
        quantize_chunks<double>(p, x, place, offset, exponent, codes, parts, out);
    } else {
        quantize_chunks<float>(p, x, place, offset, exponent, codes, parts, out);
        scale_sums(out.sum, out.part, base::exact_pow2(exponent));
    }
    return out;
}

}  // namespace

block::block_stats quantize_block(const block_params& p, std::span<const float> x,
                                  const block_place& place, std::span<std::uint8_t> codes,
                                  std::span<float> values, bool parts) {
    block::block_stats out{};
    if (p.plain) {
        out = quantize_plain(p, x, place, codes, parts);
        out.scale = static_cast<float>(format::decode_e8m0(out.scale_code));
    } else if (p.scale_format->power_of_two()) {
        return quantize_dialect_block(p, x, place, codes, values, parts);
    } else {
        out = quantize_fractional(p, x, place, codes, parts);
    }
    if (!values.empty()) dequantize_block(p, out.scale, out.offset, codes, values);
    return out;
}

void dequantize_block(const block_params& p, float scale, std::uint16_t offset,
                      std::span<const std::uint8_t> codes, std::span<float> values) {
    if (!p.scale_format->power_of_two()) return dequantize_fractional(p, scale, codes, values);
    const auto s = static_cast<double>(scale);
    const auto o = static_cast<double>(base::float_from_half(offset));
    const bool narrow = p.by->arithmetic.value == element_kind::bfloat16;
    for (std::size_t i = 0; i < codes.size(); ++i) {
        const double product = s * static_cast<double>(p.value[codes[i]]);
        // Adding +0 would lose the sign of a negative zero.
        values[i] = static_cast<float>(p.has_offset ? o + product : product);
        if (narrow) values[i] = bfloat16_arithmetic::round(values[i]);
    }
}

}  // namespace mx::quantize
