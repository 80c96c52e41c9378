// SPDX-License-Identifier: Apache-2.0
// THE LIST of recipe keys: how each is read, printed, and when it matters.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "libmx/codec/recipe.hpp"

namespace mx::codec {

struct recipe_key {
    std::string_view name;
    std::string_view values;   ///< what it takes, for help
    std::string_view summary;  ///< one line
    /// Reads `value` into the recipe; throws base::error (usage) when it cannot be.
    void (*set)(recipe&, std::string_view value);
    /// The value as parse_recipe reads it back.
    std::string (*get)(const recipe&);
};

/// Every key in the order of the canonical spelling.
std::span<const recipe_key> recipe_keys();

/// Gives members that cannot matter their default, and equal block descriptions one form. Throws
/// base::error (usage) for combinations that make no sense (a tile with an axis).
void normalize(recipe& r);

/// The scale rule that a dialect starts with for a scale format: its first one; nullptr for none.
const scale::scale_rule* default_rule(const dialect& by, std::string_view scale_format);

/// The recipe of a bare preset; throws base::error (usage) naming the nearest preset.
recipe preset_recipe(std::string_view name);

}  // namespace mx::codec
