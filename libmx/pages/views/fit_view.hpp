// SPDX-License-Identifier: Apache-2.0
// mx.fit/1 for people: a scaling law.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// Coefficients, predictions, runs far from the law, and runs left out.
std::vector<report::section> fit_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
