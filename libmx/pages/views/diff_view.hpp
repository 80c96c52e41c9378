// SPDX-License-Identifier: Apache-2.0
// A comparison of dumps as text: norm gains that approach the clamp zone, the tensors that changed
// most, all tensors combined, and a verdict.
#pragma once

#include <string>
#include <vector>

#include "libmx/report/document.hpp"
#include "libmx/studies/diff/diff.hpp"

namespace mx::pages {

/// The sections of the human table and of Markdown; `all` shows every tensor and finding.
std::vector<report::section> diff_sections(const diff::diff_result& d,
                                           const diff::dump_labels& labels, bool all);

/// The order in which the dumps are compared. `given` are the labels in the order on the command
/// line if that differs, else empty.
report::section order_section(const diff::dump_labels& labels,
                              const std::vector<std::string>& given);

}  // namespace mx::pages
