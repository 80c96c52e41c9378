// SPDX-License-Identifier: Apache-2.0
// What verdicts rest on, as options: --policy, --target and --eval of every command that gives one.
#pragma once

#include <string>

#include "apps/mx/cli.hpp"
#include "libmx/policy/judged_model.hpp"

namespace mx::app {

struct judging_options {
    std::string policy, target, eval;
};
void declare_judging(parser& cmd, judging_options& o);

/// Reads the files that are named. Throws base::error (usage, input).
policy::basis basis_of(const judging_options& o);

/// The policy of that name, or in the file: a word with a '.' or a '/'. Throws base::error.
policy::policy policy_of(const std::string& name);

/// The target of that name; "any" for an empty one. Throws base::error (usage).
const policy::target& target_of(const std::string& name);

}  // namespace mx::app
