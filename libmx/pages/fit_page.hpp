// SPDX-License-Identifier: Apache-2.0
// The tables and the page of mx study scaling-law: the law, its residuals, and what it predicts.
#pragma once

#include <vector>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// Coefficients, predictions, runs far from the law, and runs left out.
std::vector<report::section> fit_tables(const document_parts& d);

/// The verdict, figures, and these tables.
std::vector<report::section> fit_sections(const document_parts& d);

}  // namespace mx::pages
