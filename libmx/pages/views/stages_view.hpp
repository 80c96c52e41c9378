// SPDX-License-Identifier: Apache-2.0
// The products of a layer as text: one table, and a verdict.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/pages/views/values.hpp"
#include "libmx/studies/products/stages.hpp"

namespace mx::pages {

/// The sections of the human table.
std::vector<report::section> stages_sections(const std::vector<products::stage_result>& results);

/// These columns, and the errors of summing alone and in all.
std::vector<report::column> summing_columns(std::initializer_list<column_of> of);

/// For every stage with elements that are NaN or infinite, a sentence with their number.
std::vector<std::string> stages_not_finite(const std::vector<products::stage_result>& results);

/// The meaning of a ratio of errors: "same" within 2 % of 1, "unsure" within twice its standard
/// error of 1, else "helps" or "harms". Without a standard error, only the 2 % apply.
std::string_view change_word(const products::error_ratio& r);

/// The stages with unacceptable errors, the effect of rotations, and multiplicative bias, in
/// sentences.
std::vector<std::string> stages_verdict(const std::vector<products::stage_result>& results);

}  // namespace mx::pages
