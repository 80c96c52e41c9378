// SPDX-License-Identifier: Apache-2.0
// --recipe of the commands that read results: which of the recipes are selected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx::analysis {

/// Patterns over canonical recipes: a text with *, ? or [ is one; any other is a recipe, in any
/// spelling. None at all: every recipe.
class recipe_filter {
  public:
    /// Throws base::error (usage) for a text that is neither.
    explicit recipe_filter(const std::vector<std::string>& patterns);

    /// Whether every recipe is selected.
    bool takes_all() const { return patterns_.empty(); }
    bool takes(std::string_view recipe) const;
    /// Throws base::error (usage), naming the recipes, if a pattern matches none of them.
    void check(const std::vector<std::string>& recipes) const;

  private:
    struct pattern {
        std::string given;
        std::string canonical;
        bool glob;
        bool takes(std::string_view recipe) const;
    };
    std::vector<pattern> patterns_;
};

}  // namespace mx::analysis
