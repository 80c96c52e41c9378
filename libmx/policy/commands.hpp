// SPDX-License-Identifier: Apache-2.0
// The commands that a verdict names: those that measured the tensors, with other recipes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/policy/missing.hpp"
#include "libmx/report/command_line.hpp"

namespace mx::policy {

/// The command that measured results, under `recipes` (none: the policy's), with the options
/// `judging`. Empty if `by` is null.
report::command_line measuring_command(const report::given_command& by,
                                       const std::vector<std::string>& recipes,
                                       std::span<const report::given_option> judging);

/// The command that measures what is missing; empty if it is not known what measured the tensors.
std::string command_of(const missing_recipes& m, std::span<const report::given_option> judging);

/// The command that shows the blocks of a tensor as `by` read them; empty if `by` is null.
std::string show_command(const report::given_command* by, const std::string& file,
                         const std::string& tensor, const std::string& recipe);

}  // namespace mx::policy
