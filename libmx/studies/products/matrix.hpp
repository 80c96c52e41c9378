// SPDX-License-Identifier: Apache-2.0
// A matrix of a product, read from a file into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libmx/engine/control.hpp"
#include "libmx/engine/model.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "libmx/tensor/shape.hpp"

namespace mx::products {

/// Float32 values in C order. All axes but the last are rows: activations of shape batch x tokens x
/// channels are batch * tokens rows. A vector is one row.
struct matrix {
    std::string file, name;
    tensor::dtype type = tensor::dtype::f32;
    tensor::shape shape;  ///< as stored
    std::size_t rows = 0, cols = 0;
    std::vector<float> values;
    std::uint64_t inexact = 0;  ///< values that widening to float32 rounded
};

/// The largest number of elements of a matrix: products hold their matrices in memory.
inline constexpr std::uint64_t largest_matrix = std::uint64_t{1} << 31;

/// Reads a tensor as a matrix. Throws base::error: input if it is not numeric or larger than
/// largest_matrix, usage if it has no elements.
matrix read_matrix(const engine::tensor_ref& t, const engine::run_control& control);

/// The axis of a matrix that a product sums over. The other axis counts the rows of the operand.
enum class reduction : std::uint8_t { last, first };

inline std::size_t operand_rows(const matrix& m, reduction over) {
    return over == reduction::last ? m.rows : m.cols;
}
inline std::size_t operand_depth(const matrix& m, reduction over) {
    return over == reduction::last ? m.cols : m.rows;
}

/// `values` (rows x cols), transposed if needed so that the summed axis is last.
std::vector<float> reduction_last(const std::vector<float>& values, std::size_t rows,
                                  std::size_t cols, reduction over);

}  // namespace mx::products
