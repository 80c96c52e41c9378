// SPDX-License-Identifier: Apache-2.0
// What a policy looks up in a table of results: a tensor under a recipe, whatever its axis, and
// each recipe's figures on normal data.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libmx/policy/measured_model.hpp"

namespace mx::policy {

/// Finds columns of the table by recipe_key. Refers to the model, which must outlive it.
class measurements {
  public:
    /// `whole_blocks` is false if blocks need not be whole.
    measurements(const measured_model& m, bool whole_blocks);

    /// The column of the tensor's result under the recipe, in whole blocks; with `any`, or without
    /// the need for whole blocks, in others, too. None if there is no such result.
    std::optional<std::size_t> find(std::size_t tensor, const std::string& key,
                                    bool any = false) const;

    /// The recipes that any of these tensors was measured under, by key.
    std::map<std::string, codec::recipe> recipes(std::span<const std::size_t> of) const;

    /// figures_on_normal_data of a recipe that was measured, computed once for each key.
    const metrics::row& normal(const std::string& key);

  private:
    const measured_model& of_;
    bool whole_blocks_;
    std::map<std::string, std::vector<std::size_t>> columns_;  // by key
    std::map<std::string, metrics::row> normals_;
};

}  // namespace mx::policy
