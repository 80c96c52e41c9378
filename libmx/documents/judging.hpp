// SPDX-License-Identifier: Apache-2.0
// The basis of verdicts, by the names of --policy, --target and --eval.
#pragma once

#include <string>

#include "libmx/policy/judged_model.hpp"
#include "libmx/policy/targets.hpp"

namespace mx::documents {

struct judging_options {
    std::string policy, target, eval;
};

/// Reads the named files. Throws base::error (usage, input).
policy::basis basis_of(const judging_options& o);

/// The policy of that name, or in the file: a word with a '.' or a '/'. Throws base::error.
policy::policy policy_of(const std::string& name);

/// The target of that name; "any" for an empty one. Throws base::error (usage).
const policy::target& target_of(const std::string& name);

/// The choices that are not the defaults, as options: " --target b200".
std::string judging_text(const judging_options& o);

}  // namespace mx::documents
