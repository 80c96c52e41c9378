// SPDX-License-Identifier: Apache-2.0
// The page of mx runs: shares of stable runs, losses and, if probes were taken, zeta over steps and
// against the loss, and gains relative to the clamp zone.
#pragma once

#include <vector>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

/// The tables of groups (with a note on their columns), of runs, and of gradients across runs,
/// which is empty without them.
struct runs_tables {
    report::section groups, runs, across;
};
runs_tables tables_of_runs(const document_parts& d);

std::vector<report::section> runs_sections(const document_parts& d);

}  // namespace mx::pages
