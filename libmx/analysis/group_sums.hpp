// SPDX-License-Identifier: Apache-2.0
// The results of tensors that share a record, from their totals, which are added up.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "libmx/analysis/analyze.hpp"
#include "libmx/analysis/open_groups.hpp"
#include "libmx/metrics/totals.hpp"

namespace mx::analysis {

class group_sums {
  public:
    /// The request must outlive it.
    group_sums(grouping of, const analysis_request& request);
    ~group_sums();
    group_sums(const group_sums&) = delete;
    group_sums& operator=(const group_sums&) = delete;

    /// Adds a tensor (by index) under a recipe and factor: its result and the totals behind it.
    void add(std::size_t tensor, std::size_t recipe, std::size_t phase, result r,
             const metrics::totals& t);
    /// The tensor is complete.
    void complete(std::size_t tensor);
    /// Adds the results of all groups in order; of incomplete ones, those so far.
    void take(result_list& to);

  private:
    struct member_sums;
    void close(std::size_t group, std::vector<member_sums> variants);

    const analysis_request& request_;
    std::unique_ptr<open_groups<member_sums>> open_;  // recipes, then factors
    std::vector<std::vector<result>> results_;        // by group
};

}  // namespace mx::analysis
