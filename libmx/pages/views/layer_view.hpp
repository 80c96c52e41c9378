// SPDX-License-Identifier: Apache-2.0
// mx.layer/1 for people: the products of a linear layer in training.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// Errors by product and transform, and those of summing; of a dump, a table by layer.
std::vector<report::section> layer_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
