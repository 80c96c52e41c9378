// SPDX-License-Identifier: Apache-2.0
// Operands that are hard on the sums of matrix units, one way each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "libmx/gemm/accumulators.hpp"
#include "libmx/gemm/operand.hpp"
#include "libmx/gemm/operand_formats.hpp"

namespace mx::tests {

enum class operand_kind : std::uint8_t {
    any_bits,     ///< all codes alike, NaN and infinities among them
    finite_bits,  ///< all finite codes alike
    subnormal,
    largest,
    smallest,
    near_one,     ///< every alignment is shallow
    cancelling,   ///< neighbouring products of opposite sign, but for some
    one_above,    ///< one large element among small ones: all others are cut
    zeros,        ///< mostly zeros of both signs
    few_special,  ///< some NaNs and infinities
};
inline constexpr std::array operand_kinds{operand_kind::any_bits,   operand_kind::finite_bits,
                                          operand_kind::subnormal,  operand_kind::largest,
                                          operand_kind::smallest,   operand_kind::near_one,
                                          operand_kind::cancelling, operand_kind::one_above,
                                          operand_kind::zeros,      operand_kind::few_special};

std::string_view name_of(operand_kind kind);

/// The scalings with which a model accepts two formats: 0 for none, and bits of scale_set.
std::vector<std::uint32_t> scalings_of(const gemm::accumulator& m, const gemm::operand_format& a,
                                       const gemm::operand_format& b);

/// Which of the two operands: cancelling products have the sign of one of them.
enum class side : std::uint8_t { left, right };

/// `scaling`: a bit of scale_set, or 0. Scales cover their whole range, including NaN, if elements
/// do; otherwise they are near one.
gemm::operand make_operand(const gemm::operand_format& f, operand_kind kind, side which,
                           std::uint32_t scaling, std::size_t rows, std::size_t depth,
                           std::mt19937_64& random);

/// Accumulators of the model's output format, including special values and zeros if `kind` has
/// them.
std::vector<std::uint32_t> make_accumulators(bool f16, operand_kind kind, std::size_t count,
                                             std::mt19937_64& random);

}  // namespace mx::tests
