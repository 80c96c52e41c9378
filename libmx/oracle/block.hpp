// SPDX-License-Identifier: Apache-2.0
// One block: its scale, offset and codes, and every count and exact sum that the metrics need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libmx/oracle/dialects.hpp"
#include "libmx/oracle/number.hpp"
#include "libmx/oracle/value_list.hpp"

namespace mx::oracle {

/// Counts of elements; those from `nonzero` on are over finite, unpoisoned elements.
struct element_counts {
    std::uint64_t elements = 0;
    std::uint64_t nan = 0;
    std::uint64_t inf = 0;
    std::uint64_t poisoned = 0;          ///< finite elements of a block whose scale is NaN
    std::uint64_t nonzero = 0;           ///< z != 0 (z is x, with an offset float32(x - O))
    std::uint64_t overflow = 0;          ///< |z/S| > M
    std::uint64_t clamp = 0;             ///< |r| > M
    std::uint64_t top_code = 0;          ///< |q| = M of its sign
    std::uint64_t underflow = 0;         ///< x != 0 and d = 0
    std::uint64_t subnormal = 0;         ///< 0 < |q| < smallest normal
    std::uint64_t dequant_overflow = 0;  ///< a dialect's own d is not finite
};

/// Exact sums over finite, unpoisoned elements: products in squared ticks, the others in ticks.
struct exact_sums {
    integer error2 = 0;     ///< (d - x)^2
    integer x = 0;          ///< x
    integer x2 = 0;         ///< x^2
    integer xd = 0;         ///< x d
    integer d2 = 0;         ///< d^2
    integer error = 0;      ///< d - x
    integer max_error = 0;  ///< max |d - x|
    integer max_x = 0;      ///< max |x|
    // error2, divided by the category of the element:
    integer clamp_error2 = 0;      ///< clamp
    integer underflow_error2 = 0;  ///< underflow and not clamp
    integer grid_error2 = 0;       ///< neither
};

/// Adds an element: exact x and d in ticks, and its category.
void add(exact_sums& sum, const integer& x, const integer& d, bool clamped, bool underflowed);

struct quantized_block {
    int scale_code = 0;                ///< -1 where the scale is a float32
    float scale = 0;                   ///< as a number, without a tensor scale
    std::uint16_t offset = 0;          ///< binary16 bits
    std::vector<std::uint8_t> codes;   ///< what has no code (Inf kept in FP4, say) is 0 here
    std::vector<bool> coded;           ///< whether element i has a code
    std::vector<integer> dequantized;  ///< d in ticks; empty when the scale is NaN
    std::vector<float> values;         ///< what a dialect returns as d, where there is a dialect
    element_counts count;
    exact_sums sum;
    float amax = 0;  ///< what the scale rule saw
    bool zero = false;
    bool eligible = false;
    bool collapsed = false;
    bool saturated = false;
    bool dead = false;
};

/// The random draws of a block and, for systems-scaling, its column bumps.
struct block_context {
    std::span<const std::uint32_t> draws;  ///< of the elements; may be empty
    std::uint32_t scale_draw = 0;          ///< of scale=stochastic
    std::vector<bool> bumped;              ///< bumped_columns, or empty
    std::size_t cols = 1;                  ///< columns of the block
};

/// Quantizes the elements `x` of one block with a dialect other than ocp, or with a scale that is
/// not a power of two: d = S*q with the dialect's S and q. Counts use the exact y = x/S. If a scale
/// is NaN or Inf, the finite elements are poisoned; if it is finite although the block contains NaN
/// or Inf, only elements that become NaN are poisoned.
quantized_block quantize_block_in(const recipe& r, const value_list& list, std::span<const float> x,
                                  const block_context& context);

/// Quantizes the elements `x` of one block. draws[i] is the random draw of element i, read by
/// stochastic rounding only; otherwise draws may be empty.
quantized_block quantize_block(const recipe& r, const value_list& list, std::span<const float> x,
                               std::span<const std::uint32_t> draws);

/// d = O + S*q of element i, rounded once to float32; in the dialect's own arithmetic if it has
/// one.
float dequantized_f32(const quantized_block& block, std::size_t i);

// quantize_block (block.hpp) for dialects other than ocp and for scales that are not powers of two.

quantized_block quantize_dialect_block(const recipe& r, const value_list& list,
                                       std::span<const float> x, const block_context& context);

}  // namespace mx::oracle
