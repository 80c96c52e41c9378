// SPDX-License-Identifier: Apache-2.0
// Cells that differ in their scale rule only: where rules meet on equal terms.
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

/// Families of two cells and more that differ in nothing but the rule.
std::vector<family> rule_families(const sweep_plan& plan);

/// Families whose scale bytes can be compared: one cell per rule, whatever the rounding of the
/// elements, which no scale depends on. Without float32 scales, which are no bytes, and scales that
/// differ inside a block.
std::vector<family> scale_families(const sweep_plan& plan);

}  // namespace mx::compare
