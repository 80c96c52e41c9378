// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/best_scales.hpp"

#include "libmx/codec/recipe_keys.hpp"

namespace mx::codec {

std::optional<recipe> with_best_scales(const recipe& r) {
    if (r.offset != offset_kind::none || !r.scale_format->has_codes()) return std::nullopt;
    if (r.outer.what != outer_choice::kind::by_rule) return std::nullopt;
    // Searched scales are optimal only for elements rounded to nearest.
    if (r.round == format::rounding::stochastic) return std::nullopt;
    const bool numbers_alone = r.scale_format->is_number() && !scale::has_tensor_scale(r.rule->id);
    recipe best = r;
    best.by = &row_of(dialect_id::ocp);
    best.rule = scale::find_scale_rule(numbers_alone ? "search-single-level" : "search",
                                       r.scale_format->name);
    best.measure = search_measure::mse;
    best.reach = all_codes;
    best.select = four_over_six::none;
    normalize(best);
    return best;
}

}  // namespace mx::codec
