// SPDX-License-Identifier: Apache-2.0
// Emulates a tile of a matrix instruction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmx/conformance/vectors/mma_inputs.hpp"
#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/operand.hpp"

namespace mx::conformance::vectors {

/// An operand of a case without values: its format and its scale format.
gemm::operand empty_operand(const mma_case& what, const gemm::operand_format* format,
                            std::size_t rows, std::size_t depth);

/// C + A times B transposed, with C as the first accumulator, on the calling thread.
std::vector<std::uint32_t> accumulated(const gemm::operand& a, const gemm::operand& b,
                                       std::span<const std::uint32_t> c,
                                       const gemm::accumulator& model);

/// D of `tile`, rows x columns. Without `accumulate`, C is not read and counts as +0.
std::vector<std::uint32_t> multiply_tile(const mma_case& what, const mma_tile& tile,
                                         bool accumulate, const gemm::accumulator& model);

/// `rows` x depth operand of a library's product: tile i of the gauss distribution gives the rows
/// of A from 16 i on, and the rows of B (columns of the product) from 8 i on.
gemm::operand generated_a(const mma_case& what, std::uint64_t seed, std::size_t rows);
gemm::operand generated_b(const mma_case& what, std::uint64_t seed, std::size_t rows);

/// The bfloat16 nearest to a float32, ties to even; NaN is 0x7fff.
std::uint32_t rounded_to_bf16(std::uint32_t bits);

}  // namespace mx::conformance::vectors
