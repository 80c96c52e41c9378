// SPDX-License-Identifier: Apache-2.0
#include "libmx/studies/compare/families.hpp"

#include <algorithm>

#include "libmx/codec/recipe_keys.hpp"

namespace mx::compare {
namespace {

codec::recipe under_first_rule(codec::recipe r) {
    r.rule = codec::default_rule(*r.by, r.scale_format->name);
    codec::normalize(r);
    return r;
}

// The settings that determine the scales of blocks besides the rule.
codec::recipe scale_identity(const codec::recipe& r) {
    codec::recipe common = under_first_rule(r);
    common.round = format::rounding::rtne;
    common.ties = format::tie_rule::up;
    common.seed = 0;
    common.random_bits = 0;
    return common;
}

// Groups cells by `identity`; `joins(group so far, cell)` decides whether a cell joins.
template <typename Identity, typename Joins>
std::vector<family> group(const sweep_plan& plan, const Identity& identity, const Joins& joins) {
    std::vector<family> families;
    std::vector<codec::recipe> identities;
    for (std::size_t c = 0; c < plan.cells.size(); ++c) {
        const codec::recipe& r = plan.cells[c].recipe;
        const codec::recipe id = identity(r);
        auto at = static_cast<std::size_t>(std::ranges::find(identities, id) - identities.begin());
        if (at == identities.size()) {
            identities.push_back(id);
            families.push_back({codec::to_string(under_first_rule(r)), {}});
        }
        if (joins(families[at], r)) families[at].cells.push_back(c);
    }
    std::erase_if(families, [](const family& f) { return f.cells.size() < 2; });
    return families;
}

}  // namespace

std::vector<family> rule_families(const sweep_plan& plan) {
    return group(plan, under_first_rule, [](const family&, const codec::recipe&) { return true; });
}

std::vector<family> scale_families(const sweep_plan& plan) {
    return group(plan, scale_identity, [&](const family& f, const codec::recipe& r) {
        if (!codec::scales_have_codes(r) || codec::bumps_positions(r)) return false;
        return std::ranges::none_of(
            f.cells, [&](std::size_t c) { return plan.cells[c].recipe.rule == r.rule; });
    });
}

}  // namespace mx::compare
