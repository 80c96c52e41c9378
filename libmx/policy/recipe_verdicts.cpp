// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/recipe_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/policy/operands.hpp"

namespace mx::policy {
recipe_verdicts::recipe_verdicts(const judged_model& m)
    : model_(m), known_(m, m.by.setting("whole_blocks") != 0), places_(m.tensors.size()) {
    for (const class_judgement& c : m.says.classes) {
        for (std::size_t k = 0; k < c.operands.size(); ++k) places_[c.operands[k]] = {&c, k};
    }
}

std::optional<recipe_verdict> recipe_verdicts::of(std::size_t tensor, std::size_t column) {
    const auto [in, operand] = places_[tensor];
    if (in == nullptr || !model_.says.decisions[tensor].whole_blocks) return {};
    if (!model_.table.has(tensor, column)) return {};
    for (const class_recipe& c : in->candidates) {
        const trial& tried = c.trials[operand];
        if (tried.column == column)
            return recipe_verdict{std::max(c.is, tried.is), true, tried.worst};
    }
    const measured_tensor& t = model_.tensors[tensor];
    const codec::recipe& recipe = model_.table.recipes[column].recipe;
    if (model_.by.setting("whole_blocks") != 0 && !holds_whole_blocks(t, recipe)) return {};
    const trial tried =
        judge_tensor(model_.by.vetoes(in->role), model_.by.setting("dominated"), t, column,
                     model_.table.of(tensor, column), known_.normal(recipe_key(recipe)));
    return recipe_verdict{std::max(verdict::evaluate, tried.is), false, tried.worst};
}

std::string describe(const reached_limit& l) {
    return fmt::format("{} (limit {})", describe(*l.of, l.value), value_text(*l.of, l.limit));
}

}  // namespace mx::policy
