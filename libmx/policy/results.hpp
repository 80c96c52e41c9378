// SPDX-License-Identifier: Apache-2.0
// From the results of an analysis, of this run or read from a file, to the tensors that are judged.
#pragma once

#include <vector>

#include "libmx/analysis/result_list.hpp"
#include "libmx/policy/figures.hpp"

namespace mx::policy {

/// Adds one result per tensor and recipe to `to`: a tensor of the same file and name is the same, a
/// second result of a tensor and recipe is left out, and so are those of a factor other than the
/// first (`phase`). `head`: of their document, which states what measured them.
void add_results(const analysis::result_list& results, const report::record& head,
                 std::vector<measured_tensor>& to);

/// Of tensors with one storage (measured_tensor::tied_to), one counts the bytes: sets counted_with
/// of the others.
void count_ties_once(std::vector<measured_tensor>& tensors);

/// Adds what a run left out altogether, from the member `skipped` of the tail of its document
/// (mx.analysis/1): integers and tensors that are not weights, whose bytes are kept. Tensors that
/// are in `to`, and those of unknown size, are ignored.
void add_left_out(const report::record& tail, const report::record& head,
                  std::vector<measured_tensor>& to);

}  // namespace mx::policy
