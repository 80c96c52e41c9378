// SPDX-License-Identifier: Apache-2.0
// From the records that mx analyze, compare and cluster write to the tensors that are judged.
#pragma once

#include <vector>

#include "libmx/policy/figures.hpp"
#include "libmx/report/record_list.hpp"

namespace mx::policy {

/// Adds one record per tensor and recipe to `to`: a tensor of the same file and name is the same, a
/// second record of a tensor and recipe is left out, and so are those of a factor other than the
/// first (`phase`). Throws base::error (input) where a record lacks its tensor or recipe, or its
/// recipe is none.
void add_results(const report::record_list& results, std::vector<measured_tensor>& to);

}  // namespace mx::policy
