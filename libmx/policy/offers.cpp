// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/offers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "libmx/policy/operands.hpp"
#include "libmx/report/cells.hpp"

namespace mx::policy {
namespace {

void apply_scores(offer& o, std::span<const score> scores, double allowed) {
    double worst = -std::numeric_limits<double>::infinity();
    for (const score& s : scores) {
        if (recipe_key(s.recipe) != o.key || s.loss() < worst) continue;
        worst = s.loss();
        o.scored = s.text();
        const double error = 2 * s.error.value_or(0);
        if (std::abs(worst - allowed) < error) {
            o.scored += fmt::format("; too few tokens to tell it from the limit of {} %",
                                    report::percent_text(allowed));
        } else {
            o.at_best = worst <= allowed ? verdict::safe : verdict::no;
        }
    }
}

}  // namespace

codec::recipe on_target(const codec::recipe& r, const supported_format& f) {
    const bool plain = r.round == format::rounding::rtne && r.rotate.what == transform::kind::none;
    return plain && !f.recipe.empty() ? codec::parse_recipe(f.recipe) : r;
}

std::vector<offer> offers_of(const policy& by, std::string_view role, const target& on,
                             std::span<const score> scores) {
    std::vector<offer> offers;
    for (const rule* r : by.candidates(role)) {
        const supported_format f = support_of(on, r->recipe->preset);
        if (r->at_best == verdict::no || f.is == support::absent) continue;
        if (r->native_only && f.is != support::native) continue;
        offer o{{}, on_target(*r->recipe, f), r->at_best, {}};
        o.key = recipe_key(o.recipe);
        apply_scores(o, scores, by.setting("task_loss"));
        offers.push_back(std::move(o));
    }
    return offers;
}

std::vector<codec::recipe> baselines() {
    return codec::parse_recipes({"bf16", "e4m3:scale=tensor", "int8:scale=channel"});
}

void leave_out_baselines(std::vector<codec::recipe>& recipes) {
    const std::vector<codec::recipe> known = baselines();
    std::vector<codec::recipe> others = recipes;
    std::erase_if(
        others, [&](const codec::recipe& r) { return std::ranges::find(known, r) != known.end(); });
    if (!others.empty() && others.size() + known.size() == recipes.size()) {
        recipes = std::move(others);
    }
}

}  // namespace mx::policy
