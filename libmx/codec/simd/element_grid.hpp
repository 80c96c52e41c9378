// SPDX-License-Identifier: Apache-2.0
// A recipe as float32 arithmetic sees it: the grid of the element format, the step of the scale
// rule. Adding and subtracting c = 2^23 quanta rounds a float32 to the grid, ties to even, because
// the sum has no bits below one quantum; c follows the exponent of the number where the format
// does.
#pragma once

#include <cstdint>

#include "libmx/codec/block_params.hpp"

namespace mx::codec::simd {

/// How elements are rounded, as far as kernels differ.
enum class rounding_kind : std::uint8_t { nearest, threshold, stochastic };

struct element_grid {
    bool fixed;                    ///< one quantum for all numbers
    std::uint32_t least_exponent;  ///< float32 exponent field, in place, of the lowest binade
    std::uint32_t magic_step;      ///< what leads from a binade to c: the distance, in place
    float max_positive, max_negative;
    float smallest_normal;  ///< 0 without subnormals

    rounding_kind rounding;
    /// threshold: goes up when the rest is more than this many quanta, by sign.
    float threshold_positive, threshold_negative;
    std::uint32_t random_mask;  ///< stochastic: the bits of a draw that count

    // Magnitude code of a normal number: bits >> code_shift, less code_base.
    int bits;
    int code_shift;
    std::uint32_t code_base;
    float inverse_quantum;  ///< of the fixed grid

    // Scale code: (amax bits + rule_step) >> 23, less rule_base, between 0 and 254.
    std::uint32_t rule_step;
    int rule_base;
    int least_code;  ///< of the scale, so that every term is a normal number
};

/// Whether a recipe can be put so.
bool takes(const block_params& p);

/// The grid of a recipe that takes() approves.
element_grid grid_of(const block_params& p);

}  // namespace mx::codec::simd
