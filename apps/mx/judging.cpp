// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/judging.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/mx/options.hpp"
#include "libmx/analysis/results_input.hpp"

namespace mx::app {

void declare_judging(parser& cmd, judging_options& o) {
    cmd.group("Verdict");
    cmd.add_option("--policy NAME", o.policy,
                   fmt::format("the rules of recommendations: {}, or a file, whose name has a '.' "
                               "or '/' (training where the input holds gradients or moments, else "
                               "inference); see mx explain policy",
                               fmt::join(policy::policy_names(), ", ")));
    cmd.add_option("--target TARGET", o.target,
                   fmt::format("what the model is for, which decides what is native there: {}",
                               fmt::join(names_of(policy::targets), ", ")));
    cmd.add_option(
        "--eval FILE", o.eval,
        "metrics of a task by recipe (mx.scores/1): what was measured takes the place of "
        "\"needs evaluation\"");
}

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
    require_one_of("--target", "target", name, names_of(policy::targets));
    return policy::find_target(name);
}

}  // namespace mx::app
