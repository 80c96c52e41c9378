// SPDX-License-Identifier: Apache-2.0
// The files and tensors that a command works on: options, opening, and records of what was read.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/cli.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/report/record.hpp"

namespace mx::app {

/// FILE..., --tensor, what a file cannot say about itself, and how its tensors are seen.
struct input_options {
    std::vector<std::string> files;
    std::vector<std::string> globs;
    io::open_options open;
    engine::view_request views;
};
/// `byte_offset`: what the option for the offset of raw data is called; --byte-offset alone where
/// --offset means something else.
inline constexpr const char* byte_offset_only = "--byte-offset";
void declare_inputs(parser& cmd, input_options& in,
                    const char* byte_offset = "--offset,--byte-offset");

/// Opens the files; errors name the file. Refuses (base::error, usage) a path of `outputs` that is
/// one of them, or of the files (shards) that the model turns out to consist of.
engine::model open_inputs(const input_options& in, const std::vector<std::string>& outputs);

/// --role, --role-pattern, --norm-bias: the choice of tensors by what they are in the model.
struct role_options {
    std::vector<std::string> roles;     ///< none: tensors of every role
    std::vector<std::string> patterns;  ///< ROLE=GLOB
    float norm_bias = 0;
};
void declare_roles(parser& cmd, role_options& o);

/// The finder with the user's patterns. Throws base::error (usage).
engine::role_finder finder_of(const role_options& o);

/// Those of `tensors` that have one of the roles asked for. Throws base::error (usage) for an
/// unknown role, and naming the roles when none of them has a tensor.
std::vector<engine::tensor_ref> with_roles(std::vector<engine::tensor_ref> tensors,
                                           const role_options& o,
                                           const engine::role_finder& finder);

/// [{"path", "bytes"}] of every file read; with `sha256` also that, for which each is read again.
report::list input_list(const engine::model& model, bool sha256 = false);

/// [{"file", "tensor", "recipe", "reason"}] of what a run left out; of tensors that are no real
/// numbers, or no weights, also "dtype", "shape", "elements" and "bytes".
report::list skipped_list(const std::vector<engine::skipped_tensor>& skipped);

/// A shape as a list of integers.
report::list shape_value(const tensor::shape& shape);

/// Paths of every file that the model consists of.
std::vector<std::string> paths_of(const engine::model& model);

}  // namespace mx::app
