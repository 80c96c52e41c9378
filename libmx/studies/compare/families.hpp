// SPDX-License-Identifier: Apache-2.0
// Groups of cells that differ only in their scale rule.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "libmx/studies/compare/cells.hpp"

namespace mx::compare {

struct family {
    std::string name;                ///< the canonical recipe under the first rule of its dialect
    std::vector<std::size_t> cells;  ///< indices into sweep_plan::cells, in their order
};

/// Groups of at least two cells that differ only in the rule.
std::vector<family> rule_families(const sweep_plan& plan);

/// Groups whose scale bytes can be compared: one cell per rule, with any rounding of the elements,
/// because scales do not depend on it. Excludes float32 scales, which have no byte code, and scales
/// that differ within a block.
std::vector<family> scale_families(const sweep_plan& plan);

}  // namespace mx::compare
