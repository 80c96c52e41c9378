// SPDX-License-Identifier: Apache-2.0
// The measurements of tensors by recipe, and each recipe's figures on normal data.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "libmx/policy/figures.hpp"

namespace mx::policy {

/// Finds measurements by recipe_key. Points into the tensors, which must outlive it.
class measurements {
  public:
    /// `whole_blocks` is false if blocks need not be whole.
    measurements(std::span<const measured_tensor> tensors, bool whole_blocks);

    /// The tensor's measurement under the recipe, in whole blocks; with `any`, or without the need
    /// for whole blocks, in others, too. Null if there is none.
    const measurement* find(std::size_t tensor, const std::string& key, bool any = false) const;

    /// The recipes that any of these tensors was measured under.
    std::set<std::string> keys(std::span<const std::size_t> of) const;

    /// figures_on_normal_data, computed once for each key.
    const metrics::row& normal(const std::string& key);

  private:
    struct known {
        const std::string* key;
        bool whole;
    };
    std::span<const measured_tensor> tensors_;
    std::set<std::string> keys_;
    std::vector<std::vector<known>> of_;  // by tensor and measurement
    std::map<std::string, metrics::row> normals_;
};

}  // namespace mx::policy
