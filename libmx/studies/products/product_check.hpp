// SPDX-License-Identifier: Apache-2.0
// Whether a product that a kernel computed is one that its class of kernels can give
// (docs/design/tolerances.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/report/declared.hpp"
#include "libmx/studies/products/matrix.hpp"
#include "libmx/studies/products/operand_recipe.hpp"

namespace mx::products {

/// A class of kernels: float32 sums in any order (gemm::sum_class), or the bits of one unit.
struct kernel_class {
    bool faithful = false;
    std::optional<gemm::accumulator> unit;
    gemm::arrangement how;  ///< of the unit's steps
};

/// Parses "any-order-f32", "any-order-f32-faithful" or the name of a unit (parse_accumulator, whose
/// base::error it throws).
kernel_class parse_kernel_class(const std::string& text);

struct check_request {
    operand_recipe recipe_a, recipe_b;
    reduction over_a = reduction::last;   ///< A is M x K
    reduction over_b = reduction::first;  ///< B is K x N
    kernel_class of;
    std::size_t show = 10;  ///< outputs outside that are listed
    std::string backend;    ///< of the unit's product; "": the fastest
};

/// An output that no kernel of the class gives.
struct output_outside {
    std::size_t row = 0, column = 0;
    float got = 0;
    double low = 0, high = 0;  ///< NaN if only NaN conforms
};

struct product_check {
    std::size_t m = 0, n = 0, k = 0;
    std::uint64_t outside = 0;
    std::uint64_t single = 0;     ///< outputs for which only one value conforms
    std::uint64_t unbounded = 0;  ///< outputs for which every value conforms
    double widest = 0;            ///< the largest distance from the exact sum that conforms
    double used = 0;  ///< the largest share of that distance that an output inside has, 0 to 1
    std::vector<output_outside> first;

    std::uint64_t outputs() const { return std::uint64_t{m} * n; }
};

/// Checks D, M x N in float32, bfloat16 or float16, against A times B; `c` (M x N, or nullptr) is
/// one more term of each sum. Does not depend on threads. Throws base::error (usage) if shapes,
/// rotations, D's dtype or the unit do not fit.
product_check check_product(const matrix& d, const matrix& a, const matrix& b, const matrix* c,
                            const check_request& request, const engine::run_control& control);

/// The schema mx.product-check/1, and its records.
report::document_schema product_check_schema();
report::record check_record(const product_check& p);
report::record outside_record(const output_outside& o);

}  // namespace mx::products
