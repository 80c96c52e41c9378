// SPDX-License-Identifier: Apache-2.0
// One tensor as an argument: FILE, or FILE:TENSOR where the file holds several.
#pragma once

#include <string>
#include <vector>

#include "apps/mx/cli.hpp"
#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/studies/products/matrix.hpp"

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

/// An opened file and the tensor in it.
struct matrix_input {
    engine::model model;
    engine::tensor_ref tensor;
};

/// Opens the file and finds the tensor: by its name, a pattern that fits one name, or the only one
/// that holds numbers. Throws base::error: input when the file cannot be read; usage, naming what
/// there is, when that is not one tensor. `option`: what the argument is called.
matrix_input open_matrix(const matrix_argument& m, const matrix_options& o,
                         const std::string& option);

}  // namespace mx::app
