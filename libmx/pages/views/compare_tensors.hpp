// SPDX-License-Identifier: Apache-2.0
// Single tensors in the view of `mx compare`: which lose most, and what a rotation did to them.
#pragma once

#include "libmx/report/document.hpp"
#include "libmx/studies/compare/comparison.hpp"

namespace mx::pages {

/// The ten tensors with the largest error relative to their size under the first cell of the
/// ranking, and the cell that is best for each where that is another. No rows for a single tensor.
report::section worst_section(const compare::sweep_plan& plan, const compare::comparison& c);

/// The crest factors of the tensors as each transform leaves them. No rows without transforms.
report::section crest_section(const compare::sweep_plan& plan, const compare::comparison& c);

}  // namespace mx::pages
