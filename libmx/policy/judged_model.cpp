// SPDX-License-Identifier: Apache-2.0
#include "libmx/policy/judged_model.hpp"

#include <algorithm>
#include <utility>

#include "libmx/policy/offers.hpp"
#include "libmx/policy/results.hpp"

namespace mx::policy {

std::optional<std::size_t> judged_model::find(std::string_view file,
                                              std::string_view tensor) const {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (tensors[i].file == file && tensors[i].name == tensor) return i;
    }
    return {};
}

judged_model judge_model(std::vector<measured_tensor> tensors, const basis& b) {
    judged_model m;
    m.tensors = std::move(tensors);
    m.by = b.by ? *b.by : find_policy(default_policy(m.tensors));
    m.on = b.on;
    m.says = judge(m.tensors, m.by, *m.on, b.scores);
    return m;
}

judged_model judge_model(const std::vector<analysis::result>& results, const report::record& tail,
                         const basis& b) {
    std::vector<measured_tensor> tensors;
    add_results(results, tensors);
    add_left_out(tail, tensors);
    return judge_model(std::move(tensors), b);
}

std::vector<codec::recipe> recipes_to_measure(const policy& by, const target& on) {
    std::vector<codec::recipe> recipes;
    std::vector<std::string_view> roles;
    for (const rule& r : by.rules) {
        if (r.is != rule_kind::candidate) continue;
        if (std::find(roles.begin(), roles.end(), r.role) == roles.end()) roles.push_back(r.role);
    }
    for (const std::string_view role : roles) {
        for (const offer& o : offers_of(by, role, on, {})) {
            if (std::find(recipes.begin(), recipes.end(), o.recipe) == recipes.end()) {
                recipes.push_back(o.recipe);
            }
        }
    }
    return recipes;
}

}  // namespace mx::policy
