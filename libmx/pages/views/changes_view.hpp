// SPDX-License-Identifier: Apache-2.0
// mx.changes/1 for people: two results files compared.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The tensors whose figures changed most, and what only one file has.
std::vector<report::section> changes_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
