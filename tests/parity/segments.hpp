// SPDX-License-Identifier: Apache-2.0
// Runs a backend over every segment of a matrix and collects all results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libmx/codec/backends.hpp"
#include "libmx/codec/quantizer.hpp"
#include "libmx/codec/recipe.hpp"
#include "libmx/tensor/dtypes.hpp"
#include "tests/conformance/block_inputs.hpp"

namespace mx::tests {

/// A matrix as stored.
struct stored_matrix {
    tensor::dtype type = tensor::dtype::f32;
    std::uint64_t rows = 0, cols = 0;
    std::vector<std::byte> bytes;
};

/// `rows` x `cols` numbers: blocks of kind `kind`, or of all kinds in turn, for format `f`.
stored_matrix make_matrix(tensor::dtype type, std::uint64_t rows, std::uint64_t cols,
                          const std::vector<block_kind>& kinds, const format::element_format& f,
                          std::uint64_t seed);

/// The facts of the whole matrix that a recipe may need.
codec::tensor_facts facts_of(const stored_matrix& m);

/// The backends to compare with the first, the reference.
std::vector<const codec::backend*> backends_here();

/// All results of a backend for a matrix under a recipe, byte for byte: counts and maxima of every
/// segment; the exact sums of all, with the parts of the squared error if `parts` is set; the
/// details wanted of every block, with codes also values that codes do not determine.
std::vector<std::byte> everything(const codec::backend& b, const stored_matrix& m,
                                  const codec::recipe& r, codec::detail wanted, bool parts,
                                  bool sums = true);

/// The first difference of a backend from the reference; empty if there is none.
std::string disagreement(const stored_matrix& m, const codec::recipe& r, codec::detail wanted,
                         bool parts);

/// Every kind of block, and those that the vector kernels do without the reference.
inline const std::vector<block_kind> every_kind(block_kinds.begin(), block_kinds.end());
inline const std::vector<block_kind> usual_kinds{block_kind::gaussian,   block_kind::heavy_tail,
                                                 block_kind::clustered,  block_kind::ties,
                                                 block_kind::thresholds, block_kind::sparse,
                                                 block_kind::constant,   block_kind::signed_zeros};

/// A part of a matrix: `rows` x `cols` elements from a corner at which a segment begins.
struct matrix_part {
    std::uint64_t row = 0, rows = 0;
    std::uint64_t col = 0, cols = 0;
};

/// A request; requested results alternate.
codec::recipe_request asked_of(const codec::block_params& params, std::size_t turn);

/// The same for all segments of a part at once, under several recipes with the same block extents:
/// see asked_of.
std::vector<std::byte> everything(codec::quantizer& by, const stored_matrix& m,
                                  const matrix_part& part,
                                  const std::vector<codec::recipe>& recipes);

}  // namespace mx::tests
