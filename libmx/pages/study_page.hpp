// SPDX-License-Identifier: Apache-2.0
// The page of mx study: gaps with their intervals by group, errors and gaps, and tables.
#pragma once

#include <vector>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// The tables of configurations, correlations and stochastic rounding, without empty ones.
std::vector<report::section> study_tables(const document_parts& d);

std::vector<report::section> study_sections(const document_parts& d);

}  // namespace mx::pages
