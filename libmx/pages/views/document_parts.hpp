// SPDX-License-Identifier: Apache-2.0
// Reads members, which may be missing, of documents for pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libmx/report/document.hpp"
#include "libmx/report/members.hpp"

namespace mx::pages {

/// A document, in memory or read from JSON. Non-owning.
struct document_parts {
    const report::record& head;
    const report::record_list& results;
    const report::record& tail;
};

using report::records_in;

inline constexpr const char* verdict_heading = "Verdict";
/// The notes of a verdict as the member `verdict` of a document's tail.
report::list verdict_lines(const report::notes& notes);
/// The section of the member `verdict`, a list.
report::section verdict_of(const report::record& tail);

}  // namespace mx::pages
