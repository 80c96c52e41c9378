// SPDX-License-Identifier: Apache-2.0
// mx.gemm/1 for people: a product under several accumulator models.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The operands, errors by model, distances in ulps, differences between models, and growth with K.
std::vector<report::section> gemm_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
