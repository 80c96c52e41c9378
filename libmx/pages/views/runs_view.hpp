// SPDX-License-Identifier: Apache-2.0
// mx.runs/1 for people: training runs compared.
#pragma once

#include <vector>

#include "libmx/pages/views/document_parts.hpp"
#include "libmx/pages/views/view_options.hpp"

namespace mx::pages {

/// Groups, runs, and gradients across runs; on a page shares of stable runs, losses and, if probes
/// were taken, zeta over steps and against the loss, and gains relative to the clamp zone.
std::vector<report::section> runs_view(const document_parts& d, const view_options& o);

}  // namespace mx::pages
