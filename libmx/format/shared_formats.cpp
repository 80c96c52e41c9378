// SPDX-License-Identifier: Apache-2.0
// Sources: HiFloat4 (arXiv:2602.11287) from global-computing-consortium/HiFloat4@6d937b6
// (hif4_gpu/quant_cy/base/QFuncs/hifx.py); RaZeR (arXiv:2501.04052) from yc2367/NVFP4-RaZeR@82ecc9a
// (quant_nvfp4_razer_e3m3, the format of its weights); IF4 (arXiv:2603.28765) from
// mit-han-lab/fouroversix@dadfad6 (the PyTorch reference, scale rule mse).
#include "libmx/format/shared_formats.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "libmx/base/bits.hpp"
#include "libmx/base/half.hpp"
#include "libmx/format/cast.hpp"
#include "libmx/format/decode.hpp"

namespace mx::format {
namespace {

constexpr int longest_block = 64;

float largest_in(std::span<const float> x) {
    float amax = 0;
    for (const float v : x) amax = std::max(amax, std::abs(v));
    return amax;
}

// To E4M3, to nearest even, and back.
float rounded_to_e4m3(float x) {
    static const element_format& f = *find_element_format("e4m3");
    static const element_params p = params_of(f, false);
    return decode(f, cast_code(p, {}, base::bits_of(x), true, 0));
}

// HiFloat4: 64 elements share a scale with 6 exponent and 2 mantissa bits, every 8 of them an
// exponent of 0 or 1, every 4 another one; elements are multiples of 1/4 up to 7/4. Reciprocals and
// the scale before its rounding are bfloat16.

constexpr float least_e6m2 = 0x1p-48f, largest_e6m2 = 0x1.8p15f;

// To nearest even, of a number within the range.
float rounded_to_e6m2(float x) {
    const int exponent = std::ilogb(x);
    return std::ldexp(std::nearbyint(std::ldexp(x, 2 - exponent)), exponent - 2);
}

void quantize_hif4(std::span<const float> x, float /*amax*/, std::span<shared_element> to) {
    constexpr std::size_t eight = 8, four = 4;
    const float seventh = base::rounded_to_bf16(1.0f / 7.0f);
    const float scale = rounded_to_e6m2(
        std::clamp(base::rounded_to_bf16(largest_in(x) * seventh), least_e6m2, largest_e6m2));
    const float inverse = base::rounded_to_bf16(1.0f / scale);
    for (std::size_t i = 0; i < x.size(); i += four) {
        const std::size_t outer = i / eight * eight;
        const auto eighth = x.subspan(outer, std::min(eight, x.size() - outer));
        const auto quarter = x.subspan(i, std::min(four, x.size() - i));
        const float high = largest_in(eighth) * inverse >= 4 ? 2.0f : 1.0f;
        const float low = largest_in(quarter) * inverse / high >= 2 ? 2.0f : 1.0f;
        for (std::size_t k = i; k < i + quarter.size(); ++k) {
            const float magnitude = std::abs(x[k]);
            // In float32, so that the sum with 1/2 rounds.
            const float quarters = magnitude / high / low * inverse * 4.0f + 0.5f;
            const float most = 7.0f;
            const float q = std::min(std::floor(quarters), most);
            const float sign = x[k] < 0 ? -1.0f : 1.0f;
            const auto limit = 1.75 * static_cast<double>(high * low) * static_cast<double>(scale);
            to[k] = {sign * (q / 4.0f) * high * low * scale, static_cast<double>(magnitude) > limit,
                     std::floor(quarters) > most, q == most};
        }
    }
}

// A block under one choice of values: its elements, and the sum of squared errors.
struct candidate {
    std::array<shared_element, longest_block> elements;
    double error = 0;
};

// The flags of an element y under values up to `least` and `most`, whose neighbours are a step
// away.
shared_element flagged(float value, float q, float y, float least, float most, float step) {
    return {value, y > most || y<least, y> most + step / 2 || y < least - step / 2,
            q == most || q == least};
}

// RaZeR: E2M1 whose code of -0 is 5, -5, 8 or -8, as the block chooses, under a scale of three
// exponent and three mantissa bits and a tensor scale.

constexpr std::array razer_specials{5.0f, -5.0f, 8.0f, -8.0f};
constexpr float least_e3m3 = 0x1p-5f, largest_e3m3 = 28.0f, largest_e2m1 = 6.0f;
constexpr float razer_range = largest_e2m1 * largest_e3m3;

// E2M1 without -0, and the special value, ascending.
std::array<float, 16> razer_values(float special) {
    std::array<float, 16> v{0,       0.5f,  1,  1.5f,  2,  3,  4,  6,
                            special, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    std::ranges::sort(v);
    return v;
}

candidate razer_under(std::span<const float> scaled, float largest, float special, float tensor) {
    static const std::array all{razer_values(5), razer_values(-5), razer_values(8),
                                razer_values(-8)};
    const auto& values = all[static_cast<std::size_t>(std::ranges::find(razer_specials, special) -
                                                      razer_specials.begin())];
    const float most = std::max(largest_e2m1, std::abs(special));
    const float scale = rounded_to_e4m3(std::clamp(largest / most, least_e3m3, largest_e3m3));
    candidate c;
    for (std::size_t i = 0; i < scaled.size(); ++i) {
        const float y = scaled[i] / scale;
        std::size_t at = 0;  // a midpoint belongs to the value below
        while (at + 1 < values.size() && y > (values[at] + values[at + 1]) / 2) ++at;
        const float q = values[at];
        const double off = static_cast<double>(q * scale) - static_cast<double>(scaled[i]);
        c.error += off * off;
        const bool above = y > 0;
        c.elements[i] = flagged(q * scale * tensor, q, y, values.front(), values.back(),
                                above ? values[15] - values[14] : values[1] - values[0]);
    }
    return c;
}

void quantize_razer(std::span<const float> x, float amax, std::span<shared_element> to) {
    const float tensor = amax / razer_range;
    if (tensor == 0) {
        std::ranges::fill(to, shared_element{});
        return;
    }
    std::array<float, longest_block> room;
    const std::span scaled(room.data(), x.size());
    std::ranges::transform(x, scaled.begin(), [&](float v) { return v / tensor; });
    const float largest = largest_in(scaled);
    candidate best = razer_under(scaled, largest, razer_specials.front(), tensor);
    for (std::size_t s = 1; s < razer_specials.size(); ++s) {
        const candidate other = razer_under(scaled, largest, razer_specials[s], tensor);
        if (other.error < best.error) best = other;
    }
    std::copy_n(best.elements.begin(), to.size(), to.begin());
}

// IF4: a block has E2M1 or integers up to 7 in steps of 6/7, under NVFP4's scales.

constexpr float if4_range = largest_e2m1 * 448.0f;
constexpr float sevenths = 0.8571428571f, in_sevenths = 1.16666666f;  // as its source has them

void quantize_if4(std::span<const float> x, float amax, std::span<shared_element> to) {
    static const element_format& f = *find_element_format("e2m1");
    static const element_params p = params_of(f, false);
    if (amax == 0) {
        std::ranges::fill(to, shared_element{});
        return;
    }
    const float encode = if4_range / amax;
    const float scale = rounded_to_e4m3(largest_in(x) / largest_e2m1 * encode);
    const float decoded = 1.0f / encode;
    const float factor = scale != 0 ? 1.0f / (decoded * scale) : 0.0f;
    candidate floating, integer;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float y = x[i] * factor;
        const float q = decode(f, cast_code(p, {}, base::bits_of(y), true, 0));
        const float d = q * scale * amax / if4_range;
        const float n = std::nearbyint(std::clamp(y * in_sevenths, -7.0f, 7.0f));
        const float e = n * scale * amax * sevenths / if4_range;
        const auto squared = [&](float value) {
            const double off = static_cast<double>(value) - static_cast<double>(x[i]);
            return off * off;
        };
        floating.error += squared(d);
        integer.error += squared(e);
        floating.elements[i] = flagged(d, q, y, -largest_e2m1, largest_e2m1, 2);
        integer.elements[i] = flagged(e, n, y * in_sevenths, -7, 7, 1);
    }
    const candidate& best = integer.error < floating.error ? integer : floating;
    std::copy_n(best.elements.begin(), to.size(), to.begin());
}

constexpr std::array shared_rows{
    shared_format{detail::floating("hif4", 1, 2, 1, specials::none, "U8",
                                   "HiFloat4: E6M2 per 64, an exponent bit per 8 and per 4"),
                  64, 32, 0, quantize_hif4},
    shared_format{detail::floating("razer", 2, 1, 1, specials::none, "U8",
                                   "NVFP4 with 5, -5, 8 or -8 in place of -0, by block"),
                  16, 8, razer_range, quantize_razer},
    shared_format{detail::floating("if4", 2, 1, 1, specials::none, "U8",
                                   "NVFP4 with E2M1 or integers up to 7, by block"),
                  16, 8, if4_range, quantize_if4},
};

}  // namespace

std::span<const shared_format> shared_formats() { return shared_rows; }

const shared_format* find_shared_format(std::string_view name) {
    for (const shared_format& f : shared_rows) {
        if (f.element.name == name) return &f;
    }
    return nullptr;
}

void round_to_shared(const shared_format& f, float amax, std::size_t row, std::span<float> x) {
    std::array<shared_element, longest_block> to;
    for (std::size_t at = 0; at < x.size();) {
        const std::size_t left = row - at % row;
        const auto block = x.subspan(at, std::min(static_cast<std::size_t>(f.block), left));
        if (std::ranges::all_of(block, [](float v) { return std::isfinite(v); })) {
            f.quantize(block, amax, std::span(to.data(), block.size()));
            for (std::size_t i = 0; i < block.size(); ++i) block[i] = to[i].value;
        } else {
            std::ranges::fill(block, std::numeric_limits<float>::quiet_NaN());
        }
        at += block.size();
    }
}

}  // namespace mx::format
