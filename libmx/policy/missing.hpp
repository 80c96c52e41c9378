// SPDX-License-Identifier: Apache-2.0
// Recipes that were not measured and would be judged.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libmx/policy/figures.hpp"

namespace mx::policy {

/// Recipes that a policy would judge and that tensors were not measured under.
struct missing_recipes {
    std::vector<std::string> recipes;                 ///< canonical, with the axis that they need
    std::vector<std::string> tensors;                 ///< names; empty: all of them
    bool needed = false;                              ///< something is undecided without them
    std::shared_ptr<const report::given_command> by;  ///< what measured them; null: not known
};

/// Gathers what is missing, tensor by tensor, into few commands.
class missing_list {
  public:
    void add(const measured_tensor& tensor, const std::string& recipe, bool needed);
    /// `operands`: how many tensors there are in all. Necessary measurements come first.
    std::vector<missing_recipes> take(std::size_t operands);

  private:
    struct missing_recipe {
        std::string recipe;
        std::vector<std::string> tensors;
        bool needed;
        std::shared_ptr<const report::given_command> by;
    };
    std::vector<missing_recipe> by_recipe_;
};

}  // namespace mx::policy
