// SPDX-License-Identifier: Apache-2.0
// Runs a driver over every segment of a matrix and keeps all it says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/quantize/drivers.hpp"
#include "libmx/quantize/recipe.hpp"
#include "libmx/quantize/segment_batch.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "tests/conformance/block_inputs.hpp"

namespace mx::tests {

/// A matrix as it is stored.
struct stored_matrix {
    tensor::dtype type = tensor::dtype::f32;
    std::uint64_t rows = 0, cols = 0;
    std::vector<std::byte> bytes;
};

/// `rows` x `cols` numbers: blocks of kind `kind`, or of all kinds in turn, for format `f`.
stored_matrix make_matrix(tensor::dtype type, std::uint64_t rows, std::uint64_t cols,
                          const std::vector<block_kind>& kinds, const format::element_format& f,
                          std::uint64_t seed);

/// The drivers to compare with the first, the reference.
std::vector<const quantize::driver*> drivers_here();

/// Everything a driver delivers for a matrix under a recipe, byte for byte: stats of every segment,
/// with the parts of the squared error where `parts` says so, and with details codes and facts of
/// every block.
std::vector<std::byte> everything(const quantize::driver& d, const stored_matrix& m,
                                  const quantize::recipe& r, quantize::detail wanted, bool parts);

/// A part of a matrix, for batches: `rows` x `cols` of its elements from a corner on that a segment
/// begins at.
struct matrix_part {
    std::uint64_t row = 0, rows = 0;
    std::uint64_t col = 0, cols = 0;
};

/// The same of a batch, for a part of the matrix under all recipes at once, which share their block
/// extents; what is wanted takes turns.
std::vector<std::byte> everything(quantize::segment_batch& batch, const stored_matrix& m,
                                  const matrix_part& part,
                                  const std::vector<quantize::recipe>& recipes);

}  // namespace mx::tests
