// SPDX-License-Identifier: Apache-2.0
// The tables of `mx cluster`: findings, figures, remedies, and a summary of the rest.
#pragma once

#include <vector>

#include "libmx/pages/views/result_set.hpp"
#include "libmx/report/document.hpp"

namespace mx::pages {

/// Whether results are those of mx cluster.
bool is_diagnosis(const result_set& of);

/// What mx cluster finds, the ten worst findings or `all`; empty for other results.
std::vector<report::section> cluster_view(const result_set& of, bool all = false);

}  // namespace mx::pages
