// SPDX-License-Identifier: Apache-2.0
// Which accumulator model gives the outputs of a product, and inputs that tell models apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/studies/products/gemm_study.hpp"

namespace mx::products {

/// One model that multiplies the operands without rounding them first.
struct candidate_unit {
    gemm::accumulator model;
    std::uint64_t differing = 0;  ///< outputs that differ from D; NaNs are one, zeros too
};

/// Every candidate of the list (or of request.models) under request.how, those with the fewest
/// differences first; equal ones in the order of the list. Throws base::error (usage) if shapes do
/// not fit, and if no model multiplies such operands.
std::vector<candidate_unit> identify_unit(const matrix& d, const matrix& a, const matrix& b,
                                          const matrix* c, const gemm_request& request,
                                          const engine::run_control& control);

/// A (M x K) and B (K x N) whose product tells models apart; quantizing them again under the recipe
/// changes no value.
struct unit_probe {
    std::size_t m = 0, n = 0, k = 0;  ///< fewer than 1,000 outputs
    std::vector<float> a, b;
    /// Every model that multiplies them without rounding them first; those with the same outputs
    /// (NaNs are one, zeros too) together.
    std::vector<std::vector<gemm::accumulator>> classes;
};

/// Chooses rows of A among 2,048 drawn ones until every pair of models differs in two outputs or no
/// row tells more apart. The same bytes for the same recipe and seed. Throws base::error (usage)
/// for blocks of several rows, transforms, and operands that no model takes.
unit_probe make_unit_probe(const operand_recipe& recipe, std::uint64_t seed,
                           const engine::run_control& control);

/// The schema mx.gemm-identity/1, and a record of it.
report::document_schema identity_schema();
report::record candidate_record(const candidate_unit& u);

}  // namespace mx::products
