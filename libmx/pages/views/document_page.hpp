// SPDX-License-Identifier: Apache-2.0
// What documents say to people. A view is a function of a document, in memory or read back from
// JSON; the terminal, Markdown, pages and `mx report` show it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// Ends a document whose schema has a view: `verdict`, notes of a section, becomes the member
/// `verdict` of its tail and a section, which the view follows.
void finish_document(report::document& d, report::notes verdict, const view_options& o = {});

/// The page of a document, identified by the member `schema` of its head: the verdict, then the
/// view with its figures. nullopt for schemas without a view.
std::optional<report::document> document_page(const document_parts& d);
/// The same for a document in memory, with its title.
report::document document_page(const report::document& d);

}  // namespace mx::pages
