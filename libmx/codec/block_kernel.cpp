// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/block_kernel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "libmx/codec/dialect_block.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/ocp_block.hpp"

namespace mx::codec {
namespace {

block_survey look_at(std::span<const float> x) {
    block_survey s;
    for (const float v : x) s.add(v);
    return s;
}

// The input of the scale rule if there is an offset.
std::uint32_t range_bits(const block_params& p, const block_survey& s, std::span<const float> x,
                         float offset) {
    if (p.range == range_kind::half) return base::bits_of(half_range(s));
    std::uint32_t range = 0;
    for (const float v : x) range = std::max(range, distance_bits(v, offset));
    return range;
}

void quantize_elements(const block_params& p, std::span<const float> x, const block_place& place,
                       float offset, std::span<std::uint8_t> codes, block::exact_totals* sums,
                       bool parts, block::block_stats& out) {
    const int exponent = scale_exponent(out);
    const bool random = p.mode.how == format::rounding::stochastic;
    const base::random_key key{p.seed, place.tensor_id};
    const element_encoder encoder(p, exponent, offset);
    element_tally tally;
    double max_error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint32_t draw =
            random ? base::random_u32(key, place.index(static_cast<int>(i))) : 0u;
        const element_encoder::element e = encoder.encode(x[i], draw, tally);
        codes[i] = e.code;
        const block::exact_value d{offset, e.product};
        max_error = std::max(max_error, std::abs(error_of(x[i], d.offset, d.product)));
        if (sums != nullptr) sums->add(x[i], d, e.part, parts);
    }
    out.sum.max_error = max_error;
    tally.finish(p.element, out);
}

block::block_stats quantize_ocp(const block_params& p, std::span<const float> x,
                                const block_place& place, std::span<std::uint8_t> codes,
                                block::exact_totals* sums, bool parts) {
    block::block_stats out{};
    const block_survey seen = look_at(x);
    if (!begin_block(p, seen, static_cast<std::uint32_t>(x.size()), out)) {
        std::fill(codes.begin(), codes.end(), p.poisoned_code);
        return out;
    }
    const float offset = base::float_from_half(out.offset);
    if (!choose_scale(p, seen, p.has_offset ? range_bits(p, seen, x, offset) : seen.amax, out)) {
        std::fill(codes.begin(), codes.end(), p.poisoned_code);
        return out;
    }
    quantize_elements(p, x, place, offset, codes, sums, parts, out);
    return out;
}

}  // namespace

block::block_stats quantize_block(const block_params& p, std::span<const float> x,
                                  const block_place& place, std::span<std::uint8_t> codes,
                                  std::span<float> values, block::exact_totals* sums, bool parts) {
    if (!p.ocp) return quantize_dialect(p, x, place, codes, values, sums, parts);
    block::block_stats out = quantize_ocp(p, x, place, codes, sums, parts);
    out.scale = scale_of_code(out.scale_code);
    if (!values.empty()) dequantize_block(p, out.scale, out.offset, codes, values);
    return out;
}

block::block_stats measure_block(const block_params& p, std::span<const float> x,
                                 const block_place& place, std::span<std::uint8_t> codes,
                                 std::span<float> values, block::exact_totals* sums, bool parts) {
    block::exact_totals own;
    block::block_stats out = quantize_block(p, x, place, codes, values, &own, parts);
    round_to(own, out.sum);
    if (sums != nullptr) sums->merge(own);
    return out;
}

bool codes_tell_values(const block_params& p) {
    if (p.outer_areas || p.by->inf_value.value == inf_element::keep) return p.ocp;
    return p.by->id == dialect_id::ocp || !p.scale_format->power_of_two();
}

namespace {

template <typename T>
void dequantize(const block_params& p, float scale, std::uint16_t offset,
                std::span<const std::uint8_t> codes, std::span<T> values) {
    if (p.scale_format->power_of_two()) {
        const power_decoder by(p, scale, offset);
        for (std::size_t i = 0; i < codes.size(); ++i) values[i] = by.value<T>(codes[i]);
        return;
    }
    const float_scale_decoder by(p, scale);
    const auto value = [&](std::uint8_t code) { return static_cast<T>(by.decode_unrounded(code)); };
    std::ranges::transform(codes, values.begin(), value);
}

}  // namespace

void dequantize_block(const block_params& p, float scale, std::uint16_t offset,
                      std::span<const std::uint8_t> codes, std::span<float> values) {
    dequantize(p, scale, offset, codes, values);
}

void dequantize_block(const block_params& p, float scale, std::uint16_t offset,
                      std::span<const std::uint8_t> codes, std::span<double> values) {
    dequantize(p, scale, offset, codes, values);
}

void bumps_of_row(std::span<const float> row, std::span<std::uint8_t> bump) {
    std::vector<std::uint32_t> largest(bump.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        std::uint32_t& m = largest[i % bump.size()];
        m = std::max(m, base::bits_of(row[i]) & base::f32_magnitude_mask);
    }
    for (std::size_t i = 0; i < bump.size(); ++i) bump[i] = raises_exponent(largest[i]) ? 1 : 0;
}

}  // namespace mx::codec
