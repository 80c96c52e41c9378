// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "libmx/report/figure.hpp"
#include "libmx/report/writers.hpp"

namespace mx::report::html {

/// `figures` in their order, each with its data. Those of one group stand where its first one
/// does: that one open, the others folded, until the script makes one of them of all.
void write_figures(const std::vector<figure>& figures, const sink& out);

}  // namespace mx::report::html
