// SPDX-License-Identifier: Apache-2.0
// The products of a layer as people read them: one table, and a verdict.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/document.hpp"
#include "libmx/studies/products/stages.hpp"

namespace mx::pages {

/// The sections of the human table.
std::vector<report::section> stages_sections(const std::vector<products::stage_result>& results);

/// Of every stage with elements that are not finite, how many are, in a sentence each.
std::vector<std::string> stages_not_finite(const std::vector<products::stage_result>& results);

/// What a ratio of errors says: "same" within 2 % of 1, "unsure" within twice its standard error of
/// 1, else "helps" or "harms". Without a standard error the 2 % alone count.
std::string_view change_word(const products::error_ratio& r);

/// Which stage breaks, what rotations do about it, and what is bias, in sentences.
std::vector<std::string> stages_verdict(const std::vector<products::stage_result>& results);

}  // namespace mx::pages
