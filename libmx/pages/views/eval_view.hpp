// SPDX-License-Identifier: Apache-2.0
// mx.eval/1 for people: what recipes cost a model, and which of its parts cost most.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// The answer in at most three sentences, the recipes, and what else was asked for: parts, pairs,
/// layers, and the tokens that change most.
std::vector<report::section> eval_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
