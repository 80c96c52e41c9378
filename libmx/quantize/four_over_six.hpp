// SPDX-License-Identifier: Apache-2.0
// Four-over-six: which of two scales a block takes (mit-han-lab/fouroversix@dadfad6).
#pragma once

#include <span>

#include "libmx/quantize/block_kernel.hpp"
#include "libmx/quantize/fractional_scale.hpp"

namespace mx::quantize {

/// The scale under which the block's maximum becomes 6, or the one under which it becomes 4 where
/// that makes the error of the block strictly smaller by the measure `p.select`. Errors d - x are
/// exact, and so is the comparison of their sums.
fractional_scale select_scale(const block_params& p, std::span<const float> x,
                              const block_place& place, const fractional_scale& six,
                              const fractional_scale& four);

}  // namespace mx::quantize
