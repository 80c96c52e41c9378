// SPDX-License-Identifier: Apache-2.0
// mx.plan/1 for people: a plan for mixed precision.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The recipes, the mixtures, tensors with the largest error, and tensors that are kept or left
/// out.
std::vector<report::section> plan_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
