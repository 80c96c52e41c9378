// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/show/scale_family.hpp"

#include <algorithm>

#include "libmx/codec/recipe_keys.hpp"

namespace mx::show {
namespace {

using codec::four_over_six;
using scale::rule_id;

// Rules with the same scales by definition (scale_rules.hpp).
rule_id same_scales(rule_id id) { return id == rule_id::ceil_div_max ? rule_id::enhanced : id; }

bool takes_four_over_six(const codec::recipe& r) {
    return r.rule->id == rule_id::two_level && r.element->name == "e2m1" &&
           r.by->id == codec::dialect_id::ocp;
}

}  // namespace

std::vector<codec::recipe> scale_family(const codec::recipe& r) {
    std::vector<codec::recipe> family{r};
    const auto add = [&](codec::recipe other) {
        codec::normalize(other);
        if (codec::bumps_positions(other)) return;
        const bool known = std::ranges::any_of(family, [&](const codec::recipe& f) {
            return same_scales(f.rule->id) == same_scales(other.rule->id) &&
                   f.select == other.select;
        });
        if (!known) family.push_back(std::move(other));
    };
    for (const scale::scale_rule& rule : scale::scale_rules) {
        if (!codec::lists(rule.scale_format, r.scale_format->name) ||
            !codec::lists(r.by->rules, rule.name)) {
            continue;
        }
        if (scale::is_search(rule.id) && r.offset != codec::offset_kind::none) continue;
        codec::recipe other = r;
        other.rule = &rule;
        if (rule.id != r.rule->id) other.outer = {};
        other.select = four_over_six::none;
        add(other);
        if (!takes_four_over_six(other)) continue;
        for (const four_over_six s :
             {four_over_six::mse, four_over_six::mae, four_over_six::abs_max}) {
            other.select = s;
            add(other);
        }
    }
    return family;
}

std::string rule_text(const codec::recipe& r) {
    for (const codec::recipe_key& key : codec::recipe_keys()) {
        if (r.select != four_over_six::none && key.name == "four_over_six") {
            return "four_over_six=" + key.get(r);
        }
    }
    return std::string(r.rule->name);
}

}  // namespace mx::show
