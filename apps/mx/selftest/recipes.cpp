// SPDX-License-Identifier: Apache-2.0
// Every recipe against the oracle, on a seeded sample of blocks that are hard to get right.
#include "apps/mx/selftest/selftest.hpp"

#if defined(MX_HAS_ORACLE)

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "apps/mx/oracle_recipe.hpp"
#include "libmx/base/parallel.hpp"
#include "libmx/base/status.hpp"
#include "libmx/oracle/block.hpp"
#include "libmx/pipeline/vectors/input_categories.hpp"
#include "libmx/pipeline/vectors/vector_inputs.hpp"
#include "libmx/quantize/block_kernel.hpp"

namespace mx::app {
namespace {

using quantize::recipe;

constexpr std::size_t blocks_per_recipe = pipeline::input_categories.size();

// What parse_recipe takes out of the product of all lists.
std::vector<recipe> all_recipes() {
    std::vector<std::string> choices{""};
    const auto times = [&](const std::vector<std::string>& keys) {
        std::vector<std::string> product;
        for (const std::string& c : choices) {
            for (const std::string& k : keys) product.push_back(c + k);
        }
        choices = std::move(product);
    };
    std::vector<std::string> rules, roundings, dialects;
    for (const scale::scale_rule& r : scale::scale_rules) {
        if (r.scale_format == "e8m0") rules.push_back(fmt::format(",scale={}", r.name));
    }
    for (const format::rounding_row& r : format::roundings) {
        roundings.push_back(fmt::format(",round={}", r.name));
    }
    for (const quantize::dialect& d : quantize::dialects()) {
        if (d.blocks) dialects.push_back(fmt::format(",dialect={}", d.name));
    }
    times(rules);
    times(roundings);
    times(dialects);
    times({"", ",offset=fp16", ",offset=fp16,range=half"});
    std::vector<recipe> all;
    for (const format::element_format& f : format::element_formats) {
        std::vector<std::string> own{""};
        if (!f.floating()) own = {"", ",int_emax=log2max", ",int_emax=1"};
        if (f.floating() && f.mantissa_bits == 0) own = {"", ",ties=even"};
        for (const std::string& c : choices) {
            for (const std::string& extra : own) {
                try {
                    all.push_back(quantize::parse_recipe(
                        fmt::format("mxfp8:element={}{}{}", f.name, c, extra)));
                } catch (const base::error&) {  // no such combination
                }
            }
        }
    }
    const auto spelling = [](const recipe& a, const recipe& b) {
        return quantize::to_string(a) < quantize::to_string(b);
    };
    std::sort(all.begin(), all.end(), spelling);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

bool same_value(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// One line of hexadecimal input, shortened to the elements that show it.
std::string input_of(std::span<const float> x) {
    std::string out;
    for (const float v : x)
        out += fmt::format("{}{:08x}", out.empty() ? "" : " ", base::bits_of(v));
    return out;
}

void compare(const recipe& r, std::span<const float> x, std::uint64_t seed,
             selftest_findings& into) {
    const oracle::recipe stated = oracle_recipe(r);
    const oracle::value_list list = oracle::list_values(*r.element, stated.full_range);
    const quantize::block_params p = quantize::params_of(r);
    quantize::block_place place{seed, 0, x.size(), static_cast<int>(x.size())};
    std::vector<std::uint8_t> codes(x.size());
    std::vector<float> values(x.size());
    const block::block_stats got = quantize::quantize_block(p, x, place, codes, values);
    std::vector<std::uint32_t> draws;
    for (std::size_t i = 0; i < x.size(); ++i) {
        draws.push_back(base::random_u32({r.seed, place.tensor_id}, i));
    }
    const oracle::quantized_block want = oracle::quantize_block(stated, list, x, draws);
    const auto differ = [&](std::string expected, std::string found) {
        into.differ({quantize::to_string(r), input_of(x), std::move(expected), std::move(found)});
    };
    if (got.scale_code != want.scale_code) {
        return differ(fmt::format("scale {:#04x}", want.scale_code),
                      fmt::format("scale {:#04x}", got.scale_code));
    }
    if (got.offset != want.offset) {
        return differ(fmt::format("offset {:#06x}", want.offset),
                      fmt::format("offset {:#06x}", got.offset));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
        const float value = oracle::dequantized_f32(want, i);
        if (codes[i] == want.codes[i] && same_value(values[i], value)) continue;
        return differ(fmt::format("element {}: {:#04x} = {}", i, want.codes[i], value),
                      fmt::format("element {}: {:#04x} = {}", i, codes[i], values[i]));
    }
    into.pass(x.size() + 1);
}

}  // namespace

bool selftest_has_oracle() { return true; }

void check_recipes(selftest_findings& into, const selftest_options& options) {
    const std::vector<recipe> recipes = all_recipes();
    std::atomic<std::uint64_t> unstated{0};
    base::parallel_for(recipes.size(), options.threads, nullptr, [&](std::uint64_t i, int) {
        const recipe& r = recipes[i];
        if (!oracle_states(r)) {
            ++unstated;
            return;
        }
        const pipeline::vector_inputs in =
            pipeline::generate_inputs(r, blocks_per_recipe, options.seed + i);
        const auto size = static_cast<std::size_t>(r.block.cols);
        for (std::size_t b = 0; b < blocks_per_recipe; ++b) {
            // Every fourth block is short.
            const std::size_t length = (b + i) % 4 == 0 ? size / 2 - 1 : size;
            compare(r, std::span(in.values).subspan(b * size, length), options.seed + i, into);
        }
    });
    into.note = fmt::format("{} recipes", recipes.size() - unstated);
    if (unstated != 0) into.note += fmt::format("; the oracle does not state {} more", unstated);
}

}  // namespace mx::app

#else

namespace mx::app {

bool selftest_has_oracle() { return false; }
void check_recipes(selftest_findings&, const selftest_options&) {}

}  // namespace mx::app

#endif
