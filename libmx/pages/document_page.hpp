// SPDX-License-Identifier: Apache-2.0
// Pages of what commands other than analyze, compare and cluster found: from the JSON they write,
// so that `--html` and `mx report` make the same page.
#pragma once

#include <optional>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// The page of a document of mx plan, gate, diff (of dumps or of results), stages, gemm, runs, fit
/// or project, by the member `schema` of its head: the verdict, then figures, then tables. None for
/// other schemas.
std::optional<report::document> document_page(const document_parts& d);
/// The same of a document in memory, with its title.
report::document document_page(const report::document& d);

}  // namespace mx::pages
