// SPDX-License-Identifier: Apache-2.0
// The page of mx runs: shares of stable runs, losses, and as far as probes were taken, zeta over
// steps and against the loss, and where gains were beside the clamp zone.
#pragma once

#include <vector>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// The tables of groups (with a note of what their columns are), of runs, and of gradients across
/// runs, which has no rows where there are none.
struct runs_tables {
    report::section groups, runs, across;
};
runs_tables tables_of_runs(const document_parts& d);

std::vector<report::section> runs_sections(const document_parts& d);

}  // namespace mx::pages
