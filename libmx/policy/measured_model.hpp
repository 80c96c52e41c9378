// SPDX-License-Identifier: Apache-2.0
// From the results of an analysis, of this run or read from a file, to the tensors that are judged.
#pragma once

#include <vector>

#include "libmx/analysis/results_table.hpp"
#include "libmx/policy/figures.hpp"

namespace mx::policy {

/// Tensors and what was measured of them. Filled by add() first, then by add_left_out().
struct measured_model {
    analysis::results_table table;
    /// Those of the table, in its order, then those without results.
    std::vector<measured_tensor> tensors;

    /// Adds the results of a document whose head is `head`, which states what measured them.
    void add(const analysis::result_list& results, const report::record& head);

    /// Adds what a run left out altogether, from the member `skipped` of the tail of its document
    /// (mx.analysis/1): integers and tensors that are not weights, whose bytes are kept. Tensors
    /// that are there, and those of unknown size, are ignored.
    void add_left_out(const report::record& tail, const report::record& head);

    /// Of tensors with one storage (measured_tensor::tied_to), one counts the bytes: sets
    /// counted_with of the others.
    void count_ties_once();
};

}  // namespace mx::policy
