// SPDX-License-Identifier: Apache-2.0
// `mx verify D --class CLASS`: a product against what kernels of a class can give.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/product_options.hpp"

namespace mx::app {

struct product_check_options {
    std::string of;  ///< the class; empty: no product is checked
    matrix_argument d, a, b, c;
    matrix_options in;
    std::string recipe, recipe_a, recipe_b;
    bool transpose_a = false, transpose_b = false;
    product_options steps;  ///< of a unit: the order and the slices
    bool power = false;     ///< plant faults in place of checking D
    double atol = 1e-2, rtol = 1e-2;
    std::size_t show = 10;
    run_options run;
    output_options out;
};

/// --class and the operands.
void declare_product_check(parser& cmd, product_check_options& o);

/// Refuses options of operands without --class.
void require_class(const product_check_options& o);

/// Checks D, or with --power plants faults in A. Returns the exit code.
int check_product(const product_check_options& o);

}  // namespace mx::app
