// SPDX-License-Identifier: Apache-2.0
// mx.gate/1 for people.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The rules, and the worst violations of each.
std::vector<report::section> gate_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
