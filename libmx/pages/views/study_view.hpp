// SPDX-License-Identifier: Apache-2.0
// mx.study/1 for people: a study of training runs.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// Configurations, correlations, exceptions and pairs; on a page the gaps and errors as figures.
std::vector<report::section> study_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
