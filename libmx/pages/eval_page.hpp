// SPDX-License-Identifier: Apache-2.0
// The tables and figures of mx eval: what recipes cost a model, and which of its parts cost most.
#pragma once

#include <vector>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// The answer in at most three sentences, the recipes, and what else was asked for: parts, pairs,
/// layers, and the tokens that change most. Of a document of mx.eval/1.
std::vector<report::section> eval_sections(const document_parts& d);

}  // namespace mx::pages
