// SPDX-License-Identifier: Apache-2.0
// Compares every recipe with the oracle on a seeded sample of blocks that are hard to quantize
// correctly.
#include "apps/mx/commands/selftest.hpp"

#if defined(MX_HAS_ORACLE)

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/codec/block_kernel.hpp"
#include "libmx/codec/dialect_scale.hpp"
#include "libmx/conformance/vectors/block_vectors.hpp"
#include "libmx/conformance/vectors/vector_inputs.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/oracle/block.hpp"

namespace mx::app {
namespace {

using codec::recipe;

constexpr std::size_t blocks_per_recipe = conformance::vectors::input_category_count;

// Options of some recipes; parse_recipe refuses combinations that do not exist.
std::vector<std::string> extras_of(const format::element_format& f, const codec::dialect& d) {
    std::vector<std::string> extras{""};
    if (!f.floating()) extras = {"", ",int_emax=log2max", ",int_emax=1"};
    if (f.floating() && f.mantissa_bits == 0) extras = {"", ",ties=even"};
    if (d.id == codec::dialect_id::microxcaling) extras.push_back(",flush_subnormals=true");
    if (d.id != codec::dialect_id::ocp) return extras;
    std::vector<std::string> all = extras;
    for (const char* offset : {",offset=fp16", ",offset=fp16,range=half"}) {
        for (const std::string& e : extras) all.push_back(e + offset);
    }
    return all;
}

// The recipes that begin with `start`, with every rule and rounding of a dialect.
void add_recipes(const std::string& start, std::string_view scale_format, const codec::dialect& d,
                 const std::vector<std::string>& extras, std::vector<recipe>& to) {
    for (const scale::scale_rule& rule : scale::scale_rules) {
        if (!codec::lists(rule.scale_format, scale_format) || !codec::lists(d.rules, rule.name)) {
            continue;
        }
        for (const format::rounding_row& rounding : format::roundings) {
            if (!codec::lists(d.roundings, rounding.name)) continue;
            for (const std::string& extra : extras) {
                add_if_valid(to, fmt::format("{},scale={},round={},dialect={}{}", start, rule.name,
                                             rounding.name, d.name, extra));
            }
        }
    }
}

// Every element format with E8M0, and the presets with other scales in blocks of 16.
std::vector<recipe> all_recipes() {
    std::vector<recipe> all;
    for (const codec::dialect& d : codec::dialects()) {
        if (!d.blocks) continue;
        for (const format::element_format& f : format::element_formats) {
            if (!d.elements.empty() && !codec::lists(d.elements, f.name)) continue;
            add_recipes(fmt::format("mxfp8:element={}", f.name), "e8m0", d, extras_of(f, d), all);
        }
        for (const format::block_format& preset : format::block_formats) {
            if (preset.scale == "e8m0") continue;
            add_recipes(fmt::format("{}:block=1x16", preset.name), preset.scale, d,
                        {"", ",four_over_six=mse", ",four_over_six=mae", ",four_over_six=abs_max"},
                        all);
        }
    }
    const auto spelling = [](const recipe& a, const recipe& b) {
        return codec::to_string(a) < codec::to_string(b);
    };
    std::ranges::sort(all, spelling);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

bool same_value(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// A line of hexadecimal input, shortened to the relevant elements.
std::string input_of(std::span<const float> x) {
    std::string out;
    for (const float v : x)
        out += fmt::format("{}{:08x}", out.empty() ? "" : " ", base::bits_of(v));
    return out;
}

// A sample of blocks as a tensor of one row, with the facts that both sides need.
struct sample {
    sample(const recipe& r, std::uint64_t seed) : of(r), tensor_id(seed) {
        x = conformance::vectors::generate_inputs(r, blocks_per_recipe, seed).values;
        facts = conformance::vectors::facts_of(x);
        params = codec::params_of(r, facts);
        stated = oracle_recipe(r, base::float_from_bits(facts.amax_bits));
        list = oracle::list_values(*stated.by, *r.element, stated.full_range);
        const auto cols = static_cast<std::size_t>(r.block.cols);
        if (codec::bumps_positions(r)) {
            bump.resize(cols);
            codec::bumps_of_row(x, bump);
            bumped = oracle::bumped_columns(x, cols);
        }
    }

    const recipe& of;
    std::uint64_t tensor_id;
    std::vector<float> x;
    codec::tensor_facts facts;
    codec::block_params params{};
    oracle::recipe stated;
    oracle::value_list list;
    std::vector<std::uint8_t> bump;
    std::vector<bool> bumped;
};

// The `length` elements from `first` on form one block.
void compare(const sample& s, std::size_t first, std::size_t length, selftest_findings& into) {
    const std::span<const float> x = std::span(s.x).subspan(first, length);
    codec::block_place place{s.tensor_id, first, s.x.size(), static_cast<int>(length)};
    place.bump = s.bump.empty() ? nullptr : s.bump.data();
    std::vector<std::uint8_t> codes(length);
    std::vector<float> values(length);
    const block::block_stats got = codec::quantize_block(s.params, x, place, codes, values);

    std::vector<std::uint32_t> draws;
    for (std::size_t i = 0; i < length; ++i) {
        draws.push_back(base::random_u32({s.of.seed, s.tensor_id}, first + i));
    }
    oracle::block_context context;
    context.draws = draws;
    context.scale_draw = base::random_u32({s.of.seed, ~s.tensor_id}, first);
    context.bumped = s.bumped;
    context.cols = length;
    const oracle::quantized_block want = oracle::quantize_block_in(s.stated, s.list, x, context);

    const auto differ = [&](std::string expected, std::string found) {
        into.differ({codec::to_string(s.of), input_of(x), std::move(expected), std::move(found)});
    };
    const bool same_scale = want.scale_code >= 0 ? got.scale_code == want.scale_code
                                                 : same_value(got.scale, want.scale);
    if (!same_scale) {
        return differ(fmt::format("scale code {}, {}", want.scale_code, want.scale),
                      fmt::format("scale code {}, {}", got.scale_code, got.scale));
    }
    if (got.offset != want.offset) {
        return differ(fmt::format("offset {:#06x}", want.offset),
                      fmt::format("offset {:#06x}", got.offset));
    }
    for (std::size_t i = 0; i < length; ++i) {
        const float value = oracle::dequantized_f32(want, i);
        const bool same_code = !want.coded[i] || codes[i] == want.codes[i];
        if (same_code && same_value(values[i], value)) continue;
        return differ(fmt::format("element {}: {:#04x} = {}", i, want.codes[i], value),
                      fmt::format("element {}: {:#04x} = {}", i, codes[i], values[i]));
    }
    into.pass(length + 1);
}

}  // namespace

void check_recipes(selftest_findings& into, const selftest_options& options) {
    const std::vector<recipe> recipes = all_recipes();
    base::parallel_for(recipes.size(), options.threads, nullptr, [&](std::uint64_t i, int) {
        const sample s(recipes[i], options.seed + i);
        const auto size = static_cast<std::size_t>(recipes[i].block.cols);
        for (std::size_t b = 0; b < blocks_per_recipe; ++b) {
            // Occasionally a short block; systems-scaling's columns need whole ones.
            const bool is_short = (b + i) % 4 == 0 && s.bump.empty();
            compare(s, b * size, is_short ? size / 2 - 1 : size, into);
        }
    });
    into.note = fmt::format("{} recipes", recipes.size());
}

}  // namespace mx::app

#else

namespace mx::app {

void check_recipes(selftest_findings&, const selftest_options&) {}

}  // namespace mx::app

#endif
