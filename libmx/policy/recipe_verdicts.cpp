// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/recipe_verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "libmx/policy/operands.hpp"

namespace mx::policy {
namespace {

// A zero byte separates file and name: no path contains one.
std::string key_of(const std::string& file, const std::string& tensor) {
    return file + '\0' + tensor;
}

}  // namespace

recipe_verdicts::recipe_verdicts(const judged_model& m)
    : model_(m), known_(m.tensors, m.by.setting("whole_blocks") != 0), places_(m.tensors.size()) {
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        index_.emplace(key_of(m.tensors[i].file, m.tensors[i].name), i);
    }
    for (const class_judgement& c : m.says.classes) {
        for (std::size_t k = 0; k < c.operands.size(); ++k) places_[c.operands[k]] = {&c, k};
    }
}

std::optional<std::size_t> recipe_verdicts::find(const std::string& file,
                                                 const std::string& tensor) const {
    const auto at = index_.find(key_of(file, tensor));
    return at == index_.end() ? std::nullopt : std::optional(at->second);
}

std::optional<recipe_verdict> recipe_verdicts::of(std::size_t tensor, std::string_view recipe) {
    const auto [in, operand] = places_[tensor];
    if (in == nullptr || !model_.says.decisions[tensor].whole_blocks) return {};
    const measured_tensor& t = model_.tensors[tensor];
    const auto m = std::find_if(t.measured.begin(), t.measured.end(),
                                [&](const measurement& x) { return x.text() == recipe; });
    if (m == t.measured.end()) return {};
    for (const class_recipe& c : in->candidates) {
        const trial& tried = c.trials[operand];
        if (tried.of == &*m) return recipe_verdict{std::max(c.is, tried.is), true, tried.worst};
    }
    if (model_.by.setting("whole_blocks") != 0 && !holds_whole_blocks(t, m->recipe())) return {};
    const trial tried = judge_tensor(model_.by.vetoes(in->role), model_.by.setting("dominated"), t,
                                     *m, m->result(), known_.normal(recipe_key(m->recipe())));
    return recipe_verdict{std::max(verdict::evaluate, tried.is), false, tried.worst};
}

std::string describe(const reached_limit& l) {
    return fmt::format("{} (limit {})", describe(*l.of, l.value), value_text(*l.of, l.limit));
}

}  // namespace mx::policy
