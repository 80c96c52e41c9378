// SPDX-License-Identifier: Apache-2.0
// A product under several accumulators as people read it.
#pragma once

#include <vector>

#include "libmx/pipeline/products/gemm_study.hpp"
#include "libmx/report/document.hpp"

namespace mx::app {

/// The sections of the human table. `operands`: the records of A and B.
std::vector<report::section> gemm_sections(const pipeline::products::gemm_study& s,
                                           const std::vector<report::record>& operands);

}  // namespace mx::app
