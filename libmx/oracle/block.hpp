// SPDX-License-Identifier: Apache-2.0
// One block: its scale, offset, codes, and every count and exact sum the metrics need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmx/oracle/number.hpp"
#include "libmx/oracle/recipe.hpp"
#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {

/// Counts over elements; those from `nonzero` on are over finite, unpoisoned elements.
struct element_counts {
    std::uint64_t elements = 0;
    std::uint64_t nan = 0;
    std::uint64_t inf = 0;
    std::uint64_t poisoned = 0;   ///< finite elements of a block whose scale is NaN
    std::uint64_t nonzero = 0;    ///< z != 0 (z is x, with an offset float32(x - O))
    std::uint64_t overflow = 0;   ///< |z/S| > M
    std::uint64_t clamp = 0;      ///< |r| > M
    std::uint64_t top_code = 0;   ///< |q| = M of its sign
    std::uint64_t underflow = 0;  ///< z != 0 and q = 0
    std::uint64_t subnormal = 0;  ///< 0 < |q| < smallest normal
};

/// Exact sums over finite, unpoisoned elements: products in squared ticks, others in ticks.
struct exact_sums {
    integer error2 = 0;     ///< (d - x)^2
    integer x2 = 0;         ///< x^2
    integer xd = 0;         ///< x d
    integer d2 = 0;         ///< d^2
    integer error = 0;      ///< d - x
    integer max_error = 0;  ///< max |d - x|
};

struct quantized_block {
    int scale_code = 0;
    std::uint16_t offset = 0;  ///< binary16 bits
    std::vector<std::uint8_t> codes;
    std::vector<integer> dequantized;  ///< d in ticks; empty when the scale is NaN
    element_counts count;
    exact_sums sum;
    float amax = 0;  ///< what the scale rule saw
    bool zero = false;
    bool eligible = false;
    bool collapsed = false;
    bool saturated = false;
    bool dead = false;
};

/// Quantizes the elements `x` of one block; draws[i] is the random draw of element i (read by
/// stochastic rounding only, may be empty otherwise).
quantized_block quantize_block(const recipe& r, const value_list& list, std::span<const float> x,
                               std::span<const std::uint32_t> draws);

/// d = O + S*q rounded once to float32, for element i.
float dequantized_f32(const quantized_block& block, std::size_t i);

}  // namespace mx::oracle
