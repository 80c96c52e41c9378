// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/judged_model.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "libmx/policy/offers.hpp"
#include "libmx/policy/operands.hpp"

namespace mx::policy {

const std::string& judged_model::file_of(std::size_t tensor) const {
    const measured_tensor& t = tensors[tensor];
    return by_file ? t.file : t.named();
}

judged_model judge_model(measured_model measured, const basis& b) {
    judged_model m;
    static_cast<measured_model&>(m) = std::move(measured);
    m.count_ties_once();
    m.options = b.options;
    std::set<std::pair<std::string_view, std::string_view>> names;
    for (const measured_tensor& t : m.tensors) {
        m.by_file = !names.emplace(t.named(), t.name).second || m.by_file;
    }
    m.by = policy_for(b.by, m.tensors);
    m.on = b.on;
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < m.tensors.size(); ++i) {
        if (seen.insert(m.file_of(i)).second) m.files.push_back(m.file_of(i));
    }
    m.says = judge(m, m.by, *m.on, b.scores);
    return m;
}

judged_model judge_model(const analysis::result_list& results, const report::record& tail,
                         const basis& b) {
    measured_model m;
    m.add(results, {});
    m.add_left_out(tail, {});
    return judge_model(std::move(m), b);
}

std::vector<codec::recipe> recipes_to_measure(const policy& by, const target& on,
                                              std::span<const measured_tensor> tensors) {
    std::vector<codec::recipe> recipes;
    const auto add = [&](const codec::recipe& r) {
        if (std::find(recipes.begin(), recipes.end(), r) == recipes.end()) recipes.push_back(r);
    };
    std::vector<std::pair<std::string_view, codec::recipe>> offered;  // by role
    for (const rule& r : by.rules) {
        if (r.is != rule_kind::candidate || r.at_best == verdict::no) continue;
        const supported_format f = support_of(on, r.recipe->preset);
        if (f.is == support::absent) continue;
        if (r.native_only && f.is == support::emulated && !on.any()) continue;
        offered.emplace_back(r.role, on_target(*r.recipe, f));
    }
    // Those of existing tensors; of weights in any case, because names need not show roles.
    std::set<std::string_view> roles{"weight"};
    for (const measured_tensor& t : tensors) roles.insert(by.role_of(t.role, t.name));
    for (const auto& [role, recipe] : offered) {
        if (roles.contains(role)) add(recipe);
    }
    return recipes;
}

}  // namespace mx::policy
