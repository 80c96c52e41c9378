// SPDX-License-Identifier: Apache-2.0
// Dialect systems-scaling, rule floor-bump: which exponents of a row of blocks are raised.
#pragma once

#include <cstdint>
#include <span>

#include "libmx/base/bits.hpp"
#include "libmx/scale/misrounded_log2.hpp"
#include "libmx/scale/rule_input.hpp"

namespace mx::codec {

/// Whether the exponent is raised where the largest magnitude has the float32 bits `u`: it exceeds
/// 1.75 * 2^floor(log2 of it), with log2 rounded to float32.
MX_HD inline bool raises_exponent(std::uint32_t u) {
    if (u == 0 || u >= base::f32_infinity) return false;
    const int e = scale::binade_of(u).exponent;
    const int rounded = scale::floor_rounded_log2(scale::log2_in_float32, u, e);
    return static_cast<double>(base::float_from_bits(u)) > 1.75 * base::exact_pow2(rounded);
}

/// For each of the columns of the blocks of `row` (consecutive blocks of bump.size() elements, the
/// last one may be short), whether the exponent is raised for the largest magnitude of the column
/// over all blocks. This is the code of KempnerInstitute/systems-scaling@99d244a, whose paper
/// describes one maximum per block.
void bumps_of_row(std::span<const float> row, std::span<std::uint8_t> bump);

}  // namespace mx::codec
