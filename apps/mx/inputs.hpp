// SPDX-License-Identifier: Apache-2.0
// The files and tensors of a command: options, opening, and records of what was read.
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

/// Declares FILE..., --tensor, how values are stored, and views of tensors.
void declare_inputs(parser& cmd, input_options& in);
/// The same without FILE and --tensor, for commands that name one tensor.
void declare_views(parser& cmd, input_options& in);
/// --as, --dtype, --raw, --swizzled: what files do not state about the values that they store.
void declare_stored(parser& cmd, io::open_options& open, engine::view_request& views);

/// Opens the files; errors name the file. Throws base::error (usage) if a path of `outputs` is one
/// of them or a shard of the model.
engine::model open_inputs(const input_options& in, const std::vector<std::string>& outputs);

/// --role, --role-pattern, --norm-bias: selection of tensors by role.
void declare_roles(parser& cmd, role_options& o);
/// The same without --role.
void declare_role_patterns(parser& cmd, role_options& o);

/// A shape as a list of integers.
report::list shape_value(const tensor::shape& shape);

/// Paths of all files of the model.
std::vector<std::string> paths_of(const engine::model& model);

}  // namespace mx::app
