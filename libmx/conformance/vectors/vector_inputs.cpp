// SPDX-License-Identifier: Apache-2.0
#include "libmx/conformance/vectors/vector_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <string_view>

#include "libmx/base/bits.hpp"
#include "libmx/codec/tensor_scale.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/word_stream.hpp"
#include "libmx/format/decode.hpp"

namespace mx::conformance::vectors {
namespace {

// Properties of the recipe that generators use.
struct input_facts {
    std::vector<float> magnitudes;  // finite magnitudes of the element format, ascending
    std::vector<float> values;      // finite values of all codes
    int emax = 0;
    int mantissa_bits = 0;
    std::uint32_t max_mantissa = 0;  // float32 mantissa field of the largest magnitude
    int low = 30, high = 220;        // exponent fields of typical block maxima
};

using fill_function = void (*)(const input_facts& f, word_stream& words, std::span<float> block);

struct input_category {
    std::string_view name;
    fill_function fill;
    bool extreme;  // far beyond typical magnitudes: left out if a tensor scale is shared
};

using base::bits_of;
using base::float_from_bits;

// Each draw below is its own statement: compilers differ in the order in which they evaluate
// arguments.
float with_sign(std::uint32_t magnitude, std::uint32_t word) {
    return float_from_bits(magnitude | (word & base::f32_sign_mask));
}

// A magnitude with this exponent field, limited to the normal range.
std::uint32_t magnitude_of(int field, std::uint32_t mantissa) {
    const auto kept = static_cast<std::uint32_t>(std::clamp(field, 1, 254));
    return kept << 23 | (mantissa & base::f32_mantissa_mask);
}

// n * 2^(field - 127 - 17): exact, except below the normal range, where IEEE 754 arithmetic rounds
// it identically on every machine.
float scaled(std::int32_t n, int field) {
    const int e = std::clamp(field - 127, -126, 127);
    return static_cast<float>(n) * 0x1p-17f * base::exact_pow2f(e);
}

int ordinary_field(const input_facts& f, word_stream& words) {
    return words.between(f.low, f.high);
}

void fill_gaussian(const input_facts& f, word_stream& words, std::span<float> block) {
    const int field = ordinary_field(f, words);
    for (float& x : block) x = scaled(words.bell(), field);
}

void fill_heavy(const input_facts& f, word_stream& words, std::span<float> block) {
    const int field = ordinary_field(f, words);
    for (float& x : block) {
        const int reach = std::min(std::countr_zero(words.next() | 0x800u), f.high - f.low);
        x = scaled(words.bell(), field - 4 + reach);
    }
}

void fill_below_power(const input_facts& f, word_stream& words, std::span<float> block) {
    const int field = ordinary_field(f, words);
    // 0.9 to 1.0 of 2^(field + 1).
    for (float& x : block) {
        const std::uint32_t sign = words.next();
        x = with_sign(magnitude_of(field, 0x666666u + words.below(0x199999u)), sign);
    }
}

void fill_at_power(const input_facts& f, word_stream& words, std::span<float> block) {
    const std::uint32_t power = magnitude_of(ordinary_field(f, words), 0);
    for (float& x : block) {
        const std::uint32_t sign = words.next();
        x = with_sign(power - 4u + words.below(9), sign);
    }
}

void fill_wide(const input_facts& f, word_stream& words, std::span<float> block) {
    const int field = ordinary_field(f, words);
    for (float& x : block) {
        const std::uint32_t mantissa = words.next();
        const std::uint32_t sign = words.next();
        x = with_sign(magnitude_of(field - words.between(0, 20), mantissa), sign);
    }
}

void fill_thresholds(const input_facts& f, word_stream& words, std::span<float> block) {
    // Values where scale rules change: powers of two, the format's largest value, all ones at the
    // element's precision plus half an ulp, 1.5, 1.75, sqrt 2, and the last mantissa below the next
    // power.
    const std::uint32_t half_ulp = 0x00800000u - (1u << (22 - f.mantissa_bits));
    const std::uint32_t steps[] = {0,         f.max_mantissa, half_ulp,  0x400000u,
                                   0x600000u, 0x3504f3u,      0x7fffffu, 0x700000u};
    const int field = ordinary_field(f, words);
    const std::uint32_t step = steps[words.below(static_cast<std::uint32_t>(std::size(steps)))];
    const std::uint32_t amax = magnitude_of(field, step) - 1u + words.below(3);
    for (float& x : block) {
        // Midpoints between adjacent values under one of the scales that a rule may choose.
        const auto count = static_cast<std::uint32_t>(f.magnitudes.size());
        const std::uint32_t j = words.below(count - 1);
        const float tie = 0.5f * f.magnitudes[j] + 0.5f * f.magnitudes[j + 1];
        const int scale = std::clamp(field - 127 - f.emax + words.between(0, 1), -126, 127);
        const std::uint32_t at = bits_of(tie * base::exact_pow2f(scale));
        const std::uint32_t near = at == 0 ? 0 : at - 1u + words.below(3);
        x = with_sign(std::min(near, amax), words.next());
    }
    const std::uint32_t where = words.below(static_cast<std::uint32_t>(block.size()));
    block[where] = with_sign(amax, words.next());
}

void fill_tiny(const input_facts& f, word_stream& words, std::span<float> block) {
    // From float32 subnormals to slightly above the smallest scales.
    const auto fields = static_cast<std::uint32_t>(f.emax + 4);
    const std::uint32_t top = 1u + words.below(fields << 23);
    for (float& x : block) {
        const std::uint32_t sign = words.next();
        const std::uint32_t magnitude = words.below(top);
        x = with_sign(magnitude >> words.below(8), sign);
    }
}

void fill_huge(const input_facts&, word_stream& words, std::span<float> block) {
    const int field = words.between(250, 254);
    for (float& x : block) {
        const std::uint32_t mantissa = words.next();
        const std::uint32_t sign = words.next();
        x = with_sign(magnitude_of(field - words.between(0, 3), mantissa), sign);
    }
    if (words.below(2) == 0) block[0] = with_sign(0x7f7fffffu, words.next());
}

void fill_zeros(const input_facts&, word_stream& words, std::span<float> block) {
    for (float& x : block) x = with_sign(0, words.next());
}

void fill_sparse(const input_facts& f, word_stream& words, std::span<float> block) {
    const int field = ordinary_field(f, words);
    for (float& x : block) {
        const bool zero = words.below(8) != 0;
        const std::uint32_t mantissa = words.next();
        const std::uint32_t magnitude =
            zero ? 0 : magnitude_of(field - words.between(0, 6), mantissa);
        x = with_sign(magnitude, words.next());
    }
}

void fill_non_finite(const input_facts& f, word_stream& words, std::span<float> block) {
    fill_gaussian(f, words, block);
    constexpr std::uint32_t specials[] = {0x7f800000u, 0x7fc00000u, 0x7fffffffu, 0x7fc12345u};
    const std::uint32_t special = specials[words.below(4)];
    const std::uint32_t where = words.below(static_cast<std::uint32_t>(block.size()));
    block[where] = with_sign(special, words.next());
}

void fill_codes(const input_facts& f, word_stream& words, std::span<float> block) {
    const int scale = std::clamp(ordinary_field(f, words) - 127, -100, 100);
    const std::uint32_t start = words.below(static_cast<std::uint32_t>(f.values.size()));
    for (std::size_t i = 0; i < block.size(); ++i) {
        block[i] = f.values[(start + i) % f.values.size()] * base::exact_pow2f(scale);
    }
}

// THE LIST of kinds of blocks.
constexpr std::array input_categories{
    input_category{"gaussian", fill_gaussian, false},
    input_category{"heavy-tailed", fill_heavy, false},
    input_category{"clustered below 2^k", fill_below_power, false},
    input_category{"clustered at 2^k", fill_at_power, false},
    input_category{"wide range", fill_wide, false},
    input_category{"maximum at a rounding threshold +-1 ulp, elements at ties +-1 ulp",
                   fill_thresholds, false},
    input_category{"tiny and subnormal", fill_tiny, true},
    input_category{"huge", fill_huge, true},
    input_category{"signed zeros", fill_zeros, false},
    input_category{"sparse", fill_sparse, false},
    input_category{"non-finite", fill_non_finite, false},
    input_category{"values of codes", fill_codes, false},
};
static_assert(input_categories.size() == input_category_count);

input_facts facts_of(const codec::recipe& r, bool moderate) {
    const format::element_format& f = *r.element;
    input_facts facts;
    facts.emax = f.emax();
    facts.mantissa_bits = f.mantissa_bits;
    facts.max_mantissa = f.max_f32_mantissa();
    for (int code = 0; code < f.codes(); ++code) {
        const float value = format::decode(f, static_cast<std::uint32_t>(code));
        if (!std::isfinite(value)) continue;
        facts.values.push_back(value);
        if (!std::signbit(value)) facts.magnitudes.push_back(value);
    }
    std::ranges::sort(facts.magnitudes);
    if (moderate) {
        facts.low = 120;
        facts.high = 130;
    }
    return facts;
}

// The bfloat16 with the same leading bits; NaN stays NaN.
float cut_to_bf16(float x) {
    const std::uint32_t bits = base::bits_of(x) & 0xffff0000u;
    return base::float_from_bits(std::isnan(x) ? bits | 0x00400000u : bits);
}

}  // namespace

vector_inputs generate_inputs(const codec::recipe& r, std::size_t blocks, std::uint64_t seed) {
    const bool shared = r.rule->id == scale::rule_id::two_level;
    const input_facts facts = facts_of(r, shared);
    word_stream words({seed, base::tensor_id("mx vectors")});
    const std::size_t n = elements_of_block(r);
    vector_inputs out;
    out.values.resize(blocks * n);
    std::size_t next = 0;
    for (std::size_t b = 0; b < blocks; ++b, ++next) {
        while (shared && input_categories[next % input_categories.size()].extreme) ++next;
        const std::size_t category = next % input_categories.size();
        const std::span<float> block(out.values.data() + b * n, n);
        input_categories[category].fill(facts, words, block);
        const bool is_bf16 = b % 3 == 2;
        if (is_bf16) std::ranges::transform(block, block.begin(), cut_to_bf16);
        out.category.push_back(static_cast<std::uint8_t>(category));
        out.is_bf16.push_back(is_bf16 ? 1 : 0);
    }
    return out;
}

std::string category_text() {
    std::string words;
    for (std::size_t i = 0; i < input_categories.size(); ++i) {
        words += fmt::format("{}{} {}", i == 0 ? "" : "; ", i, input_categories[i].name);
    }
    return words;
}

}  // namespace mx::conformance::vectors
