// SPDX-License-Identifier: Apache-2.0
// Pages of the results of commands other than analyze, compare and cluster. They are made from
// JSON, so that `--html` and `mx report` make the same page.
#pragma once

#include <optional>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// The page of a document of mx plan, gate, diff (of dumps or of results), layer, gemm, runs, fit
/// or project, identified by the member `schema` of its head: the verdict, then figures, then
/// tables. nullopt for other schemas.
std::optional<report::document> document_page(const document_parts& d);
/// The same for a document in memory, with its title.
report::document document_page(const report::document& d);

}  // namespace mx::pages
