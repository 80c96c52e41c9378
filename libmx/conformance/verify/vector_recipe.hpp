// SPDX-License-Identifier: Apache-2.0
// The recipe described by the metadata of a blocks file.
#pragma once

#include <string>

#include "libmx/codec/recipe.hpp"
#include "libmx/conformance/verify/vector_file.hpp"

namespace mx::conformance::verify {

/// The recipe named by `recipe` (files of `mx vectors`), or the one described by format, element,
/// scale, round, block, dialect, dialect_version, int_min and flush_subnormals. Throws base::error
/// (input).
codec::recipe recipe_of(const vector_file& file);

/// Whether the file contains blocks with searched scales, which are identified by their definition,
/// not by a dialect: its tensors are named MEASURE.NAME.
bool is_searched(const vector_file& file);

/// The recipe of such a file for the measure `mse` or `mae`. Throws base::error (input).
codec::recipe searched_recipe_of(const vector_file& file, std::string_view measure);

/// The name of an element format in mx: a file may name a variant ("e4m3-no-nan-max480") that
/// depends on the dialect.
std::string element_name(const std::string& word);

}  // namespace mx::conformance::verify
