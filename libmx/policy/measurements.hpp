// SPDX-License-Identifier: Apache-2.0
// The measurements of tensors by recipe, and each recipe's figures on normal data.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
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

    /// The recipes that any of these tensors was measured under, by key.
    std::map<std::string, codec::recipe> recipes(std::span<const std::size_t> of) const;

    /// figures_on_normal_data of a recipe that was measured, computed once for each key.
    const metrics::row& normal(const std::string& key);

  private:
    struct known {
        const std::pair<const std::string, codec::recipe>* key;
        bool whole;
    };
    std::span<const measured_tensor> tensors_;
    std::map<std::string, codec::recipe> keys_;
    std::vector<std::vector<known>> of_;  // by tensor and measurement
    std::map<std::string, metrics::row> normals_;
};

}  // namespace mx::policy
