// SPDX-License-Identifier: Apache-2.0
// The description of a recipe, part by part.
#pragma once

#include <vector>

#include "libmx/codec/recipe.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/report/record.hpp"

namespace mx::pages {

/// One record {part, meaning} per part of the recipe, the canonical spelling first.
std::vector<report::record> recipe_words(const codec::recipe& r);

/// The schema mx.recipe/1.
report::document_schema recipe_schema();

}  // namespace mx::pages
