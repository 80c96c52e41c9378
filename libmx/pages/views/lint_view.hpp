// SPDX-License-Identifier: Apache-2.0
// mx.lint/1 for people: what a quantized checkpoint states wrongly or lacks.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The findings by tensor, the first of each rule.
std::vector<report::section> lint_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
