// SPDX-License-Identifier: Apache-2.0
// mx.diff/1 for people: dumps of a model compared.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The order in which dumps or results files are compared, and whether it is the order given.
report::section order_section(const report::record& head);

/// The order, norm gains near the clamp zone, the tensors that changed most, and all tensors
/// together.
std::vector<report::section> diff_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
