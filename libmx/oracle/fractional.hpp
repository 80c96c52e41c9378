// SPDX-License-Identifier: Apache-2.0
// Scales that are no powers of two: UE4M3 under a tensor scale or alone (NVFP4), and float32 (FP8
// block scaling). By convention, each as the float32 operations of its source; `exact` is our own
// reading, exact quotients rounded once.
#pragma once

#include <span>

#include "libmx/oracle/dialects.hpp"
#include "libmx/oracle/recipe.hpp"

namespace mx::oracle {

/// Whether the rule of `r` chooses such scales.
bool is_fractional(const recipe& r);

/// A scale S = block * tensor; `block` is NaN for a block that is one.
struct fractional_scale {
    int code;  ///< of UE4M3; -1 for float32
    float block;
    float tensor;  ///< 1 where there is none
    float factor;  ///< what the elements are multiplied with (torchao, te) or divided by (others)
};

/// The scale of the block `x`; chosen between two under four-over-six.
fractional_scale scale_of(const recipe& r, const value_list& list, std::span<const float> x,
                          std::span<const std::uint32_t> draws);

/// Element `x` under that scale.
element convert(const recipe& r, const value_list& list, float x, const fractional_scale& s,
                std::uint32_t draw);

/// The float32 value of an element q.
float value_of(const recipe& r, const fractional_scale& s, float q);

}  // namespace mx::oracle
