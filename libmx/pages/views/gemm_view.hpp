// SPDX-License-Identifier: Apache-2.0
// A product under several accumulator models as text.
#pragma once

#include <vector>

#include "libmx/report/document.hpp"
#include "libmx/studies/products/gemm_study.hpp"

namespace mx::pages {

/// The sections of the human table. `operands`: the records of A and B.
std::vector<report::section> gemm_sections(const products::gemm_study& s,
                                           const std::vector<report::record>& operands);

}  // namespace mx::pages
