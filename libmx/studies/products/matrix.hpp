// SPDX-License-Identifier: Apache-2.0
// A matrix of a product, in memory as its file holds it.
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

/// Values in float32, C order. All axes but the last are rows: activations of shape
/// batch x tokens x channels are batch * tokens rows. A vector is one row.
struct matrix {
    std::string file, name;
    tensor::dtype type = tensor::dtype::f32;
    tensor::shape shape;  ///< as stored
    std::size_t rows = 0, cols = 0;
    std::vector<float> values;
    std::uint64_t inexact = 0;  ///< values that widening to float32 rounded
};

/// Elements that a matrix may have: products hold their matrices in memory.
inline constexpr std::uint64_t largest_matrix = std::uint64_t{1} << 31;

/// Reads a tensor as a matrix. Throws base::error: input when it holds no numbers or is larger than
/// largest_matrix, usage when it has no elements.
matrix read_matrix(const engine::tensor_ref& t, const engine::run_control& control);

/// Which axis of a matrix a product sums over. The other one counts the rows of the operand.
enum class reduction : std::uint8_t { last, first };

inline std::size_t operand_rows(const matrix& m, reduction over) {
    return over == reduction::last ? m.rows : m.cols;
}
inline std::size_t operand_depth(const matrix& m, reduction over) {
    return over == reduction::last ? m.cols : m.rows;
}

/// `values` (rows x cols) with the axis that is summed over last.
std::vector<float> reduction_last(const std::vector<float>& values, std::size_t rows,
                                  std::size_t cols, reduction over);

}  // namespace mx::products
