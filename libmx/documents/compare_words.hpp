// SPDX-License-Identifier: Apache-2.0
// The result of a comparison in words: the best cell, its lead, its cost, and caveats.
#pragma once

#include <string>

#include "libmx/report/document.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::documents {

report::notes compare_verdict(const compare::sweep_plan& plan, const compare::comparison& c);

}  // namespace mx::documents
