// SPDX-License-Identifier: Apache-2.0
// The basis of verdicts, by the names of --policy, --target and --eval.
#pragma once

#include <string>
#include <vector>

#include "libmx/engine/model.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/policy/judged_model.hpp"
#include "libmx/policy/targets.hpp"

namespace mx::documents {

struct judging_options {
    std::string policy, target, eval;
};

/// Reads the named files. Throws base::error (usage, input).
policy::basis basis_of(const judging_options& o);

/// Tensors as a policy sees them before anything is measured.
std::vector<policy::measured_tensor> described(const std::vector<engine::tensor_ref>& tensors,
                                               const engine::role_finder& roles);

/// Whether the name of a policy is that of a file: a word with a '.' or a '/'.
bool is_policy_file(const std::string& name);

/// The policy of that name, or in that file. Throws base::error.
policy::policy policy_of(const std::string& name);

/// The target of that name; "any" for an empty one. Throws base::error (usage).
const policy::target& target_of(const std::string& name);

}  // namespace mx::documents
