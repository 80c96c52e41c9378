// SPDX-License-Identifier: Apache-2.0
#include "libmx/documents/judging.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "libmx/analysis/results_input.hpp"
#include "libmx/base/status.hpp"
#include "libmx/base/suggest.hpp"
#include "libmx/policy/missing.hpp"

namespace mx::documents {

policy::basis basis_of(const judging_options& o) {
    policy::basis b;
    if (!o.policy.empty()) b.by = policy_of(o.policy);
    b.on = &target_of(o.target);
    if (!o.eval.empty()) {
        b.scores = policy::parse_scores(analysis::open_results(o.eval).content, o.eval);
    }
    return b;
}

policy::policy policy_of(const std::string& name) {
    if (name.find_first_of("./") != std::string::npos) {
        return policy::parse_policy(analysis::open_results(name).content, name);
    }
    return policy::find_policy(name);
}

const policy::target& target_of(const std::string& name) {
    if (name.empty()) return policy::targets.front();
    std::vector<std::string_view> names;
    for (const policy::target& t : policy::targets) names.push_back(t.name);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        base::refuse("--target: " + base::unknown("target", name, names));
    }
    return policy::find_target(name);
}

std::string judging_text(const judging_options& o) {
    std::string text;
    if (!o.policy.empty()) text += " --policy " + policy::shell_word(o.policy);
    if (!o.target.empty()) text += " --target " + policy::shell_word(o.target);
    if (!o.eval.empty()) text += " --eval " + policy::shell_word(o.eval);
    return text;
}

}  // namespace mx::documents
