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

/// Moves the section of this heading to the front, and repeats its lines in the member `verdict` of
/// the document's tail.
inline constexpr const char* verdict_heading = "Verdict";
void add_verdict(report::document& d, std::string_view heading = verdict_heading);
/// The section with these lines.
report::section verdict_of(const report::record& tail);

}  // namespace mx::pages
