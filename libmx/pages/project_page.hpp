// SPDX-License-Identifier: Apache-2.0
// The tables and the page of mx study speedups: the parts of a step's time, and the savings of
// recipes.
#pragma once

#include <vector>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// The configurations, work by class, bits and bytes, fitted parameters, and sensitivity.
std::vector<report::section> project_tables(const document_parts& d);

/// The verdict, figures, and these tables.
std::vector<report::section> project_sections(const document_parts& d);

}  // namespace mx::pages
