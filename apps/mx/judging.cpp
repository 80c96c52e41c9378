// SPDX-License-Identifier: Apache-2.0
#include "apps/mx/judging.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/mx/options.hpp"

namespace mx::app {

void declare_judging(parser& cmd, judging_options& o) {
    cmd.group("Verdict", help_page::outputs);
    cmd.add_option("--policy NAME", o.policy,
                   fmt::format("rules for recommendations: {}, or a file, whose name has a '.' or "
                               "'/' (default: training for inputs with gradients or moments, else "
                               "inference); see mx explain policy",
                               fmt::join(policy::policy_names(), ", ")));
    cmd.add_option("--target TARGET", o.target,
                   fmt::format("hardware or library to recommend formats for: {}",
                               fmt::join(names_of(policy::targets), ", ")));
    cmd.add_option("--eval FILE", o.eval,
                   "metrics of a task by recipe (mx.scores/1), which replace \"needs evaluation\"");
    cmd.group("Output");
}

}  // namespace mx::app
