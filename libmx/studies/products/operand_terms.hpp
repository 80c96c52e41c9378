// SPDX-License-Identifier: Apache-2.0
// The exact products that the outputs of a product sum.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "libmx/gemm/sum_interval.hpp"
#include "libmx/studies/products/product_check.hpp"
#include "libmx/studies/products/quantized_operand.hpp"

namespace mx::products {

/// The decoded values of `q` with their block scales, exact; rows x depth. Without codes they are
/// rounded once to float32.
std::vector<double> exact_values(const quantized_operand& q);

/// Both operands, quantized, and the class of their sums.
struct operand_terms {
    operand_terms(const matrix& m, const matrix& n, const check_request& request,
                  const engine::run_control& control);

    /// The products of one output into terms[0] to terms[K - 1]. `x_row`: K values of a row of A.
    void terms(const double* x_row, std::size_t row, std::size_t col, std::span<double> to) const;

    transform::rotation rotate;
    quantized_operand a, b;
    std::vector<double> x, y;
    gemm::sum_class how;
};

}  // namespace mx::products
