// SPDX-License-Identifier: Apache-2.0
// Recipes that were not measured and would be judged.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "libmx/policy/figures.hpp"

namespace mx::policy {

/// Recipes that a policy would judge and that tensors were not measured under.
struct missing_recipes {
    std::vector<std::string> recipes;  ///< canonical, with the axis that they need
    std::vector<std::string> tensors;  ///< names; empty: all of them
    bool needed = false;               ///< something is undecided without them
};

/// Gathers what is missing, tensor by tensor, into few commands.
class missing_list {
  public:
    void add(const std::string& tensor, const std::string& recipe, bool needed);
    /// `operands`: how many tensors there are in all. Necessary measurements come first.
    std::vector<missing_recipes> take(std::size_t operands);

  private:
    struct wanted {
        std::string recipe;
        std::vector<std::string> tensors;
        bool needed;
    };
    std::vector<wanted> by_recipe_;
};

/// A word of a command line, quoted where a shell needs it.
std::string shell_word(const std::string& text);

/// The same for a file, whose name may begin like an option: "./-x".
std::string shell_path(const std::string& path);

/// The command that measures it: "mx analyze FILE -r ...".
std::string command_of(const missing_recipes& m, std::span<const measured_tensor> tensors);

}  // namespace mx::policy
