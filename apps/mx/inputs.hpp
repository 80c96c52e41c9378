// SPDX-License-Identifier: Apache-2.0
// The files and tensors that a command works on: options, opening, and records of what was read.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/cli.hpp"
#include "libmx/documents/inputs.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/report/record.hpp"

namespace mx::app {

using documents::finder_of;
using documents::input_list;
using documents::input_options;
using documents::role_options;
using documents::skipped_list;

/// FILE..., --tensor, what a file cannot say about itself, and how its tensors are seen.
void declare_inputs(parser& cmd, input_options& in);
/// The same without FILE and --tensor, for commands that name one tensor.
void declare_views(parser& cmd, input_options& in);

/// Opens the files; errors name the file. Refuses (base::error, usage) a path of `outputs` that is
/// one of them, or of the files (shards) that the model turns out to consist of.
engine::model open_inputs(const input_options& in, const std::vector<std::string>& outputs);

/// --role, --role-pattern, --norm-bias: the choice of tensors by what they are in the model.
void declare_roles(parser& cmd, role_options& o);

/// A shape as a list of integers.
report::list shape_value(const tensor::shape& shape);

/// Paths of every file that the model consists of.
std::vector<std::string> paths_of(const engine::model& model);

}  // namespace mx::app
