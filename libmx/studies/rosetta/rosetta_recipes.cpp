// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "libmx/base/status.hpp"
#include "libmx/format/block_formats.hpp"
#include "libmx/studies/rosetta/rosetta.hpp"

namespace mx::rosetta {
namespace {

using codec::dialect;
using codec::dialect_id;

// A preset whose element the recipe may replace.
constexpr std::string_view any_preset = "mxfp8";

std::string_view preset_of(const std::string& element) {
    for (const format::block_format& f : format::block_formats) {
        if (f.element == element && f.scale == "e8m0") return f.name;
    }
    return any_preset;
}

bool is_random(const scale::scale_rule& rule) { return rule.id == scale::rule_id::stochastic; }

}  // namespace

std::vector<codec::recipe> recipes_of_element(const std::string& element,
                                              const std::string& block) {
    std::vector<codec::recipe> recipes;
    const std::string start =
        fmt::format("{}:element={},block={}", preset_of(element), element, block);
    recipes.push_back(codec::parse_recipe(start));
    for (const dialect& d : codec::dialects()) {
        if (!d.blocks || (!d.elements.empty() && !codec::lists(d.elements, element))) continue;
        for (const scale::scale_rule& rule : scale::scale_rules) {
            if (!codec::lists(d.rules, rule.name) || rule.scale_format != "e8m0") continue;
            const bool inside =
                d.id == dialect_id::systems_scaling && rule.id == scale::rule_id::floor_bump;
            if (is_random(rule) || inside) continue;
            const codec::recipe r = codec::parse_recipe(
                fmt::format("{},scale={},dialect={}", start, rule.name, d.name));
            if (r == recipes.front()) continue;
            recipes.push_back(r);
        }
    }
    return recipes;
}

}  // namespace mx::rosetta
