// SPDX-License-Identifier: Apache-2.0
// From the figures of tensors to what a comparison returns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/studies/diff/diff.hpp"
#include "libmx/studies/diff/match.hpp"
#include "libmx/studies/diff/records.hpp"

namespace mx::diff {

/// One tensor under one recipe, compared.
struct compared_under {
    const matched_tensor* tensor;
    std::string_view role;
    std::size_t recipe;                 ///< its place in the request
    std::vector<double> tensor_scales;  ///< by dump; empty where the recipe has none
    compared_tensor figures;
};

/// Takes results in their order. The request outlives it.
class diff_collector {
  public:
    diff_collector(const diff_request& request, std::size_t dumps);

    void add(const compared_under& c);
    /// What was collected: results, summary, series and findings.
    void finish(diff_result& to);

  private:
    // A recipe over all tensors.
    struct recipe_total {
        std::string name;
        std::uint64_t tensors = 0;
        compared_tensor figures;
    };
    report::record pair_members(std::size_t pair) const;
    void add_pairs(const compared_under& c);

    const diff_request& request_;
    std::size_t count_;
    std::vector<recipe_total> totals_;
    report::record_list results_;
    std::vector<report::record> series_;
    std::vector<drift_finding> findings_;
};

}  // namespace mx::diff
