// SPDX-License-Identifier: Apache-2.0
// Single tensors in the view of `mx compare`: which lose most, and what a rotation did to them.
#pragma once

#include "libmx/pipeline/compare/comparison.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// The ten tensors with the largest error relative to their size under the first cell of the
/// ranking, and the cell that is best for each where that is another. No rows for a single tensor.
report::section worst_section(const pipeline::compare::sweep_plan& plan,
                              const pipeline::compare::comparison& c);

/// The crest factors of the tensors as each transform leaves them. No rows without transforms.
report::section crest_section(const pipeline::compare::sweep_plan& plan,
                              const pipeline::compare::comparison& c);

}  // namespace mx::app
