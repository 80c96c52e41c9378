// SPDX-License-Identifier: Apache-2.0
// A product under several accumulator models as text.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "libmx/pages/views/values.hpp"
#include "libmx/studies/products/gemm_study.hpp"

namespace mx::pages {

/// The sections of the human table. `operands`: the records of A and B.
std::vector<report::section> gemm_sections(const products::gemm_study& s,
                                           const std::vector<report::record>& operands);

/// Errors by accumulator: the model, these columns, and what quantization and summing err in all.
std::vector<report::column> model_columns(std::initializer_list<column_of> of);

/// The operands, each named by a character of `names`.
report::section operand_section(std::string heading, std::string_view names,
                                std::vector<report::record> operands);

/// Pairs of models that differ: products::difference_record of each.
report::section difference_section(std::vector<report::record> differences);

}  // namespace mx::pages
