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
/// `verdict` of its tail and its first section after those it has; the view follows.
void finish_document(report::document& d, std::vector<std::string> verdict,
                     const view_options& o = {});

/// The page of a document of mx plan, gate, diff (of dumps or of results), eval, layer, gemm, runs
/// or study, identified by the member `schema` of its head: the verdict, then the view with its
/// figures. nullopt for other schemas.
std::optional<report::document> document_page(const document_parts& d);
/// The same for a document in memory, with its title.
report::document document_page(const report::document& d);

}  // namespace mx::pages
