// SPDX-License-Identifier: Apache-2.0
// From the metadata of a blocks file to the recipe its vectors follow.
#pragma once

#include <string>

#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/verify/vector_file.hpp"

namespace mx::conformance::verify {

/// The recipe that `recipe` names (files of `mx vectors`), or the one that format, element, scale,
/// round, block, dialect, int_min and flush_subnormals describe. Throws base::error (input).
codec::recipe recipe_of(const vector_file& file);

/// Element names as this program spells them: a file may name a variant ("e4m3-no-nan-max480")
/// that the dialect decides.
std::string element_name(const std::string& word);

}  // namespace mx::conformance::verify
