// SPDX-License-Identifier: Apache-2.0
// Operands and sums of products, for gemm and stages. An operand is one tensor as an argument:
// FILE, or FILE:TENSOR where the file holds several.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/options.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/studies/products/matrix.hpp"
#include "libmx/studies/products/operand_recipe.hpp"

namespace mx::app {

/// What the user says about a matrix.
struct matrix_argument {
    std::string text;
    std::string shape;  ///< of raw binary
};

/// What is said about all of them.
struct matrix_options {
    std::string as, dtype;
    bool raw = false, swizzled = false;
};

/// --shape-NAME of one matrix.
void declare_matrix_shape(parser& cmd, matrix_argument& m, const std::string& name);
/// --as, --dtype, --raw, --swizzled.
void declare_matrix_options(parser& cmd, matrix_options& o);

/// The file of an argument that names a file as a whole, or the part before the ':' behind which
/// its tensor is named: the shortest one that exists. The rest is the tensor, "" without one.
struct matrix_place {
    std::string path, tensor;
};
matrix_place place_of(const std::string& text);

/// Reads matrices, and keeps what is said of their files.
struct matrix_reader {
    const matrix_options& how;
    const outputs& to;
    const engine::run_control& control;
    report::list inputs = {};  ///< as input_list gives them

    /// Opens the file and finds the tensor: by its name, a pattern that fits one name, or the only
    /// one that holds numbers. Throws base::error: input when the file cannot be read; usage,
    /// naming what there is, when that is not one tensor, and when the file is an output. `option`:
    /// what the argument is called. `info`: receives the description in the header.
    products::matrix read(const matrix_argument& m, const std::string& option,
                          io::tensor_info* info = nullptr);
};

/// --accumulate, --k-order, --slices: how products are summed.
struct product_options {
    std::vector<std::string> models;
    std::string k_order = "ascending";
    std::size_t slices = 1;
};
void declare_products(parser& cmd, product_options& o, const std::string& without_models);

/// Those of `recipes` that have blocks, each once.
std::vector<codec::recipe> block_recipes(const std::vector<products::operand_recipe>& recipes);

/// The models asked for, each once. Throws base::error (usage).
std::vector<gemm::accumulator> models_of(const product_options& o);
/// The order and the slices. Throws base::error (usage).
gemm::arrangement arrangement_of(const product_options& o);
/// {"k_order", "slices", "alpha", "beta", "accumulate_into_c"}.
report::record arrangement_record(const gemm::arrangement& how);

}  // namespace mx::app
