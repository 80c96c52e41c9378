// SPDX-License-Identifier: Apache-2.0
// Reads members, which may be missing, of documents for pages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/codec/recipe.hpp"
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

/// Whether a member is true; false if it is missing.
bool is_true(const report::record& r, std::string_view name);
/// The records of a list where they are, for lists that are too long to copy; none if it is
/// missing.
std::vector<const report::record*> records_at(const report::record& r, std::string_view name);
/// The texts of a list; none if it is missing.
std::vector<std::string> texts_in(const report::record& r, std::string_view name);
/// The recipe that a document names; nullopt if it is none, as in a file that mx did not write.
std::optional<codec::recipe> recipe_named(const std::string& text);

inline constexpr const char* verdict_heading = "Verdict";
/// The notes of a verdict as the member `verdict` of a document's tail.
report::list verdict_lines(const report::notes& notes);
/// The section of the member `verdict`, a list.
report::section verdict_of(const report::record& tail);

}  // namespace mx::pages
