// SPDX-License-Identifier: Apache-2.0
// --recipe of the commands that read results: which of the recipes there are looked at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mx::analysis {

/// Patterns over canonical recipes: what has *, ? or [ is one; anything else is a recipe, in
/// whatever spelling. None at all: every recipe.
class recipe_filter {
  public:
    /// Throws base::error (usage) for what is neither.
    explicit recipe_filter(const std::vector<std::string>& patterns);

    /// Whether every recipe is taken.
    bool takes_all() const { return patterns_.empty(); }
    bool takes(std::string_view recipe) const;
    /// Throws base::error (usage), naming the recipes, when a pattern takes none of them.
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
