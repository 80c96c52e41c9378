// SPDX-License-Identifier: Apache-2.0
// mx.project/1 for people: a projected step.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The configurations, work by class, bits and bytes, fitted parameters, and sensitivity.
std::vector<report::section> project_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
