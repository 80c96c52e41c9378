// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/quantizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/codec/float_scale.hpp"
#include "libmx/codec/ocp_block.hpp"
#include "libmx/codec/simd/values.hpp"
#include "libmx/format/decode.hpp"

namespace mx::codec {
namespace {

// The numbers of a scale format by code.
const std::array<float, 256>& numbers_of(const format::scale_format& f) {
    static const auto tables = [] {
        std::array<std::array<float, 256>, format::scale_formats.size()> all{};
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (!format::scale_formats[i].is_number()) continue;
            for (std::size_t code = 0; code < 256; ++code) {
                all[i][code] =
                    format::decode_scale(format::scale_formats[i], static_cast<std::uint8_t>(code));
            }
        }
        return all;
    }();
    return tables[static_cast<std::size_t>(&f - format::scale_formats.data())];
}

}  // namespace

std::byte* quantizer::reserve_values(std::size_t /*which*/, std::size_t /*bytes*/) {
    return nullptr;
}

float scale_of_block(const block_params& p, const block_results& d, std::size_t block) {
    const format::scale_format& f = *p.scale_format;
    if (f.is_number()) {
        // See float_scale_steps::coded.
        const float value = numbers_of(f)[d.scale_code[block]];
        const bool quark = p.by->two_level.value == two_level_kind::quark;
        return value == 0 && quark ? float_scale_steps::coded(p, 0).value : value;
    }
    // A scale without a code follows from the rule's input.
    if (!f.power_of_two()) return choose_scale(p, d.amax[block], p.largest).value;
    if (p.by->storage.value == scale_storage::float32) return dialect_scale(p, d.amax[block]).value;
    return scale_of_code(d.scale_code[block]);
}

void values_of_block(const block_params& p, const block_results& d, std::size_t block,
                     std::span<float> values) {
    const std::size_t at = block * d.stride;
    if (d.values != nullptr) {
        std::copy_n(d.values + at, values.size(), values.begin());
        return;
    }
    const float scale = scale_of_block(p, d, block);
    const std::uint8_t* const codes = d.codes + at;
    if (!p.ocp || p.has_offset || std::isnan(scale)) {
        return dequantize_block(p, scale, d.offset[block], std::span(codes, values.size()), values);
    }
    // A power of two: the float32 product is the exact product rounded once.
    simd::scaled_values(p, &scale, 1, values.size(), codes, values.data());
}

void values_of_block(const block_params& p, const block_results& d, std::size_t block,
                     std::span<double> values) {
    const std::size_t at = block * d.stride;
    if (d.values != nullptr) {
        std::copy_n(d.values + at, values.size(), values.begin());
        return;
    }
    dequantize_block(p, scale_of_block(p, d, block), d.offset[block],
                     std::span(d.codes + at, values.size()), values);
}

void values_of_blocks(const block_params& p, const block_results& d, std::size_t first,
                      std::span<float> values) {
    constexpr std::size_t most = 64;
    std::array<float, most> scales;
    while (!values.empty()) {
        const std::size_t count = std::min(most, values.size() / d.stride);
        bool plain = d.values == nullptr && p.ocp && !p.has_offset;
        for (std::size_t b = 0; plain && b < count; ++b) {
            scales[b] = scale_of_block(p, d, first + b);
            plain = !std::isnan(scales[b]);
        }
        if (plain) {
            simd::scaled_values(p, scales.data(), count, d.stride, d.codes + first * d.stride,
                                values.data());
        } else {
            for (std::size_t b = 0; b < count; ++b) {
                values_of_block(p, d, first + b, values.subspan(b * d.stride, d.stride));
            }
        }
        first += count;
        values = values.subspan(count * d.stride);
    }
}

}  // namespace mx::codec
