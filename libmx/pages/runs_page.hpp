// SPDX-License-Identifier: Apache-2.0
// The page of mx runs: shares of stable runs, losses, and as far as probes were taken, zeta over
// steps and against the loss, and where gains were beside the clamp zone.
#pragma once

#include <vector>

#include "libmx/pages/document_parts.hpp"

namespace mx::pages {

std::vector<report::section> runs_sections(const document_parts& d);

}  // namespace mx::pages
