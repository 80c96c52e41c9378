// SPDX-License-Identifier: Apache-2.0
// What a record of mx diff is of: a tensor, or several whose figures were added up (--group).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/analysis/groups.hpp"
#include "libmx/report/record.hpp"
#include "libmx/studies/diff/figures.hpp"
#include "libmx/studies/diff/match.hpp"

namespace mx::diff {

/// The member of a group that differs most between two dumps: by nrmse, and before all others one
/// of zeros that changed. Of equals the first.
struct worst_member {
    std::string tensor;
    value_figures values;
    move_figures moves;
};

/// A tensor or a group under one recipe, compared.
struct compared_under {
    std::shared_ptr<const analysis::tensor_identity> of;
    std::size_t recipe = 0;             ///< its place in the request
    std::vector<report::value> dtypes;  ///< by dump; null where members differ
    std::vector<double> tensor_scales;  ///< by dump; empty: the recipe has none, or there are many
    compared_tensor figures;
    std::uint64_t members = 1;
    std::vector<worst_member> worst;  ///< of a group: by pair of dumps

    compared_under() = default;
    /// A tensor, without figures yet.
    compared_under(const matched_tensor& t, std::string_view role, std::size_t recipe_index);
};

/// The members that records of groups have more.
void add_worst(report::record& r, const compared_under& c, std::size_t pair);
void declare_worst(report::member_list& to);

/// Adds tensors up, group by group, and keeps the sums of all groups: memory depends on the number
/// of groups, not of tensors.
class compared_groups {
  public:
    compared_groups(analysis::grouping of, std::size_t recipes);

    /// A tensor (by index) under a recipe; tensors come in their order.
    void add(std::size_t tensor, compared_under c);
    /// All groups in their order, recipes innermost.
    std::vector<compared_under> take();

  private:
    analysis::grouping of_;
    std::size_t recipes_;
    std::vector<compared_under> sums_;  // by group and recipe; of nothing: no member has it
};

}  // namespace mx::diff
