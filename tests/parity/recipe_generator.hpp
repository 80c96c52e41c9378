// SPDX-License-Identifier: Apache-2.0
// Recipes made from the lists of the grammar.
#pragma once

#include <string>
#include <vector>

#include "libmx/codec/recipe_keys.hpp"

namespace mx::tests {

/// All different: first every preset under every dialect, rule and rounding that it takes, then
/// these with more keys, each value of each key in some. They fit a matrix of 5 x 203. The same
/// every time, unless MX_RECIPE_SEED in the environment is another seed.
const std::vector<codec::recipe>& generated_recipes();
inline constexpr std::size_t generated_count = 10000;

/// The values of a key that are in some, and in how many at least.
std::vector<std::string> generated_values(const codec::recipe_key& key);
inline constexpr std::size_t generated_each = 12;

/// How many recipes have that value.
std::size_t count_with(const std::vector<codec::recipe>& recipes, const codec::recipe_key& key,
                       const std::string& value);

}  // namespace mx::tests
