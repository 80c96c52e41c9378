// SPDX-License-Identifier: Apache-2.0
// The shared scale of a block as a dialect computes it, for rules that choose powers of two.
#pragma once

#include <cstdint>

#include "libmx/quantize/block_params.hpp"

namespace mx::quantize {

/// A chosen scale. Dialects that keep a float32 scale have no code (-1); the scale may then be
/// any float32, also Inf.
struct chosen_scale {
    int code;            ///< E8M0 code, or -1
    float value;         ///< 2^(code - 127), NaN for code 255, or the float32 scale
    bool nan_quotients;  ///< the code stands for a NaN: elements are those of a NaN
};

/// The scale under the rule and dialect of `p` for a block whose maximum has the float32 bits
/// `amax_bits` (sign clear). `draw` is used by scale=stochastic only. A NaN maximum stands for a
/// block that holds a NaN; an infinite one for a block that holds an Inf (and no NaN).
chosen_scale dialect_scale(const block_params& p, std::uint32_t amax_bits, std::uint32_t draw = 0);

}  // namespace mx::quantize
