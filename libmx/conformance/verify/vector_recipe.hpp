// SPDX-License-Identifier: Apache-2.0
// From the metadata of a blocks file to the recipe its vectors follow.
#pragma once

#include <string>

#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/verify/vector_file.hpp"

namespace mx::conformance::verify {

/// The recipe that `recipe` names (files of `mx vectors`), or the one that format, element, scale,
/// round, block, dialect, dialect_version, int_min and flush_subnormals describe. Throws
/// base::error (input).
codec::recipe recipe_of(const vector_file& file);

/// Whether the file holds blocks under searched scales, which are told by their definition and not
/// by a dialect: its tensors are named MEASURE.NAME.
bool is_searched(const vector_file& file);

/// The recipe of such a file under the measure `mse` or `mae`. Throws base::error (input).
codec::recipe searched_recipe_of(const vector_file& file, std::string_view measure);

/// Element names as this program spells them: a file may name a variant ("e4m3-no-nan-max480")
/// that the dialect decides.
std::string element_name(const std::string& word);

}  // namespace mx::conformance::verify
