// SPDX-License-Identifier: Apache-2.0
#include "libmx/codec/best_scales.hpp"

#include "libmx/codec/recipe_keys.hpp"
#include "libmx/codec/tensor_scale.hpp"

namespace mx::codec {

std::optional<recipe> with_best_scales(const recipe& r) {
    if (r.offset != offset_kind::none || !r.scale_format->has_codes()) return std::nullopt;
    // A given scale is in the form of the dialect: for ocp it is the factor itself.
    const auto factor_of = [&](float stored) {
        return stored_tensor_scale(r.by->two_level.value, stored).decode;
    };
    if (!r.outer.file.empty() && factor_of(2) != 2) return std::nullopt;
    // Searched scales are optimal only for elements rounded to nearest.
    if (r.round == format::rounding::stochastic) return std::nullopt;
    const bool numbers_alone = r.scale_format->is_number() && !scale::has_tensor_scale(r.rule->id);
    recipe best = r;
    if (r.outer.what == outer_choice::kind::given) best.outer.value = factor_of(r.outer.value);
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
