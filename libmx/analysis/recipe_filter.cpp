// SPDX-License-Identifier: Apache-2.0
#include "libmx/analysis/recipe_filter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "libmx/base/glob.hpp"
#include "libmx/base/joined.hpp"
#include "libmx/base/status.hpp"
#include "libmx/codec/recipe.hpp"

namespace mx::analysis {

bool recipe_filter::pattern::takes(std::string_view recipe) const {
    return glob ? base::glob_match(given, recipe) : canonical == recipe;
}

recipe_filter::recipe_filter(const std::vector<std::string>& patterns) {
    for (const std::string& text : patterns) {
        const bool glob = text.find_first_of("*?[") != std::string::npos;
        patterns_.push_back(
            {text, glob ? text : codec::to_string(codec::parse_recipe(text)), glob});
    }
}

bool recipe_filter::takes(std::string_view recipe) const {
    return patterns_.empty() ||
           std::ranges::any_of(patterns_, [&](const pattern& p) { return p.takes(recipe); });
}

void recipe_filter::check(const std::vector<std::string>& recipes) const {
    for (const pattern& p : patterns_) {
        const bool used =
            std::ranges::any_of(recipes, [&](const std::string& r) { return p.takes(r); });
        if (!used) {
            throw base::error(base::error_kind::usage,
                              fmt::format("--recipe {}: no result has it; the results have {}",
                                          base::printable(p.given), base::joined(recipes, ", ")));
        }
    }
}

}  // namespace mx::analysis
