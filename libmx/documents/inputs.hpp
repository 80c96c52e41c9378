// SPDX-License-Identifier: Apache-2.0
// The tensors of a document: how files are opened, which tensors are selected, and the members that
// describe this.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "libmx/analysis/results_input.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/engine/roles.hpp"
#include "libmx/engine/skip.hpp"
#include "libmx/engine/views.hpp"
#include "libmx/io/reader.hpp"
#include "libmx/report/command_line.hpp"
#include "libmx/report/record.hpp"

namespace mx::documents {

/// Files, the selection of tensors, facts that a file does not state, and views of tensors.
struct input_options {
    std::vector<std::string> files;
    std::vector<std::string> globs;
    io::open_options open;
    engine::view_request views;
};

/// The selection of tensors by their roles.
struct role_options {
    std::vector<std::string> roles;     ///< none: tensors of every role
    std::vector<std::string> patterns;  ///< ROLE=GLOB
    float norm_bias = 0;
};

/// The finder with the user's patterns. Throws base::error (usage).
engine::role_finder finder_of(const role_options& o);

/// Those of `tensors` that have one of the requested roles. Throws base::error (usage) for an
/// unknown role, for a pattern that matches no tensor of their files, and naming the roles if none
/// of them has a tensor.
std::vector<engine::tensor_ref> with_roles(std::vector<engine::tensor_ref> tensors,
                                           const role_options& o,
                                           const engine::role_finder& finder);

/// The options that decide which tensors a command has, and how it sees them.
std::vector<report::given_option> given_options(const input_options& in, const role_options& roles,
                                                const std::vector<std::string>& groups = {});

/// Files in order; none for arrays in memory.
using file_sizes = std::vector<engine::input_file>;

/// Tensors and their files; no files for arrays. What is opened outlives the call.
struct opened_tensors {
    std::vector<engine::tensor_ref> tensors;
    file_sizes files;
};

/// Returns the SHA-256 of a file in hexadecimal digits; "" if it is unavailable.
using digest_function = std::function<std::string(const std::string& path)>;

/// [{"path", "bytes"}] of every file read, with the argument that named it if that is another path,
/// and its digest if there is a function for it.
report::list input_list(const file_sizes& files, const digest_function& digest = {});

/// [{"file", "tensor", "recipe", "reason"}] of what a run left out; of tensors that are not real
/// numbers, or not weights, also "dtype", "shape", "elements" and "bytes".
report::list skipped_list(const std::vector<engine::skipped_tensor>& skipped);

/// [{"path", "bytes"}] of results files.
report::list results_list(const std::vector<analysis::results_input>& inputs);

}  // namespace mx::documents
