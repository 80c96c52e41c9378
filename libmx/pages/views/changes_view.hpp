// SPDX-License-Identifier: Apache-2.0
// Two results files compared, as people read it: the tensors whose figures changed most, what only
// one file has, and a verdict.
#pragma once

#include <vector>

#include "libmx/report/document.hpp"

namespace mx::pages {

/// The sections of a document mx.changes/1, in memory or read back; `all` shows every result.
std::vector<report::section> changes_sections(const report::record_list& results,
                                              const report::record& tail, bool all);

}  // namespace mx::pages
