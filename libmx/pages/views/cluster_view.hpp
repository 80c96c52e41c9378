// SPDX-License-Identifier: Apache-2.0
// The tables of `mx cluster`: findings, figures, remedies, and a summary of the rest.
#pragma once

#include <vector>

#include "libmx/report/document.hpp"
#include "libmx/studies/cluster/diagnose.hpp"

namespace mx::pages {

/// The sections of the human table and of Markdown: the ten worst findings, or `all`.
std::vector<report::section> cluster_sections(const cluster::cluster_report& report,
                                              const analysis::analysis_request& request, bool all);

}  // namespace mx::pages
