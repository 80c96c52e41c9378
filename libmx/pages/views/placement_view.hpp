// SPDX-License-Identifier: Apache-2.0
// mx.placement/1 for people: a plan by divergence.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The recipes, the mixtures, and the places.
std::vector<report::section> placement_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
