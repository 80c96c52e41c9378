// SPDX-License-Identifier: Apache-2.0
// An operand as factors, padded with zeros to whole steps.
#pragma once

#include <vector>

#include "libmx/gemm/accumulator.hpp"
#include "libmx/gemm/factor.hpp"
#include "libmx/gemm/operand.hpp"

namespace mx::gemm {

struct unpacked_operand {
    std::size_t depth = 0;  ///< of a row of factors: K rounded up to whole steps
    std::vector<factor> factors;

    /// One scale per group and row if the model takes scales by group (algorithm::grouped);
    /// otherwise scales are part of the factors.
    std::size_t groups = 0;
    std::vector<scale_factor> scales;

    const factor* row(std::size_t r) const { return factors.data() + r * depth; }
    const scale_factor* scale_row(std::size_t r) const { return scales.data() + r * groups; }
};

/// Unpacks `x` for `m`. Significands are multiplied by UE4M3 scales if the model is software; a NaN
/// scale makes its block NaN.
unpacked_operand unpack_operand(const operand& x, const accumulator& m);

/// Fraction bits of the significands from unpack_operand, including those of the scale.
int fraction_bits_of(const operand& x);

/// The dequantized values as float32 (intake::float32) or rounded to bfloat16 (intake::bfloat16).
std::vector<float> dequantized(const operand& x, intake how);

/// The exact values, as doubles: at most 24 significant bits each.
std::vector<double> exact_values(const operand& x);

}  // namespace mx::gemm
