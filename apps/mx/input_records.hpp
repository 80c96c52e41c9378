// SPDX-License-Identifier: Apache-2.0
// Inputs as members of records.
#pragma once

#include "libmx/analysis/analyze.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/report/record.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::app {

/// [{"path", "bytes"}] of every file read; with `sha256` also that, for which each is read again.
report::list input_list(const engine::model& model, bool sha256 = false);

/// [{"file", "tensor", "recipe", "reason"}] of what a run left out.
report::list skipped_list(const std::vector<engine::skipped_tensor>& skipped);

/// A shape as a list of integers.
report::list shape_value(const tensor::shape& shape);

/// Paths of every file that the model consists of, and those named on the command line.
std::vector<std::string> paths_of(const engine::model& model,
                                  const std::vector<std::string>& named);

}  // namespace mx::app
