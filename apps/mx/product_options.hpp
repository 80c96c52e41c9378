// SPDX-License-Identifier: Apache-2.0
// Operands and sums of products, for gemm and layer. An operand is one tensor given as an
// argument: FILE, or FILE:TENSOR if the file contains several.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/options.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/multiply.hpp"
#include "libmx/studies/products/matrix.hpp"
#include "libmx/studies/products/operand_recipe.hpp"

namespace mx::app {

/// Options for one matrix.
struct matrix_argument {
    std::string text;
    std::string shape;  ///< of raw binary
};

/// How all matrices are stored.
struct matrix_options {
    io::open_options open;
    engine::view_request views;
};

/// --shape-NAME of one matrix.
void declare_matrix_shape(parser& cmd, matrix_argument& m, const std::string& name);

/// Splits an argument at the ':' after the shortest existing file name. The rest is the tensor's
/// name, "" if the argument is a file.
struct matrix_place {
    std::string path, tensor;
};
matrix_place place_of(const std::string& text);

/// Reads matrices, and records their files.
struct matrix_reader {
    const matrix_options& how;
    const outputs& to;
    const engine::run_control& control;
    report::list inputs = {};  ///< as input_list gives them

    /// Opens the file and finds the tensor: by its name, a pattern that matches one name, or as the
    /// only numeric tensor. Throws base::error: input if the file cannot be read; usage if there is
    /// not exactly one such tensor (listing the tensors), and if the file is an output. `option`:
    /// the argument's name. `info`: receives the header's entry.
    products::matrix read(const matrix_argument& m, const std::string& option,
                          io::tensor_info* info = nullptr);
    /// The same; none if the argument was not given.
    std::optional<products::matrix> read_if_given(const matrix_argument& m,
                                                  const std::string& option) {
        if (m.text.empty()) return std::nullopt;
        return read(m, option);
    }
};

/// --accumulate, --k-order, --slices: the summation of products.
struct product_options {
    std::vector<std::string> models;
    std::string k_order = "ascending";
    std::size_t slices = 1;
};
void declare_products(parser& cmd, product_options& o, const std::string& without_models);

/// Those of `recipes` that have blocks, without duplicates.
std::vector<codec::recipe> block_recipes(const std::vector<products::operand_recipe>& recipes);

/// The requested models without duplicates. Throws base::error (usage).
std::vector<gemm::accumulator> models_of(const product_options& o);
/// The order and the number of slices. Throws base::error (usage).
gemm::arrangement arrangement_of(const product_options& o);
/// {"k_order", "slices", "alpha", "beta", "accumulate_into_c"}.
report::record arrangement_record(const gemm::arrangement& how);

}  // namespace mx::app
