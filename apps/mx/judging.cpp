// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/judging.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/mx/options.hpp"

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

}  // namespace mx::app
